package main

import (
	"slices"
	"strings"
)

// didYouMean returns " (did you mean x?)" with the nearest of the right names,
// or the whole list where none is near.
func didYouMean(name string, right []string) string {
	if best := nearest(name, right); best != "" {
		return " (did you mean " + best + "?)"
	}
	if len(right) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(right))
	return " (there are " + strings.Join(sorted, ", ") + ")"
}

// nearest returns the right name with the fewest typing errors, "" where they
// all have more than a third of the name's letters, at least two.
func nearest(name string, right []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, r := range right {
		if d := typos(strings.ToLower(name), strings.ToLower(r)); d < least && d < len(r) {
			best, least = r, d
		}
	}
	return best
}

// typos is the number of letters to add, leave out, change or swap with their
// neighbour that make b of a (the optimal string alignment distance).
func typos(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
