package schema

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Similar returns those of names that a person may have meant by name, the
// nearest first: at most a third of the name's letters are wrong, or two where
// that is more. Upper and lower case count as equal.
func Similar(name string, names []string) []string {
	type candidate struct {
		name  string
		wrong int
	}
	limit := max(2, len(name)/3)
	var near []candidate
	for _, n := range names {
		wrong := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(n))
		if wrong <= limit && wrong < len(n) {
			near = append(near, candidate{n, wrong})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.wrong, b.wrong) })
	similar := make([]string, len(near))
	for i, c := range near {
		similar[i] = c.name
	}
	return similar
}

// Nearest returns the first of what [Similar] returns, "" where there is none.
// It is for errors that say what may have been meant.
func Nearest(name string, names []string) string {
	if similar := Similar(name, names); len(similar) > 0 {
		return similar[0]
	}
	return ""
}
