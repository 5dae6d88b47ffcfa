package sinks

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the candidate that a person most likely meant by name, or ""
// where none is close: at most a third of the name's letters may differ.
func nearest(name string, candidates []string) string {
	best, least := "", len(name)/3+1
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// meant returns "; nearest is …" for use in an error, or nothing.
func meant(name string, candidates []string) string {
	if n := nearest(name, candidates); n != "" {
		return fmt.Sprintf("; nearest is %q", n)
	}
	return ""
}

// distance is the number of bytes to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{cost, row[j] + 1, diagonal + 1})
		}
	}
	return row[len(b)]
}
