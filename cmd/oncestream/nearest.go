package main

import (
	"slices"
	"strings"

	"github.com/oncestream/oncestream/schema"
)

// didYouMean returns " (did you mean x?)" with the nearest of the right names,
// or the whole list where none is near.
func didYouMean(name string, right []string) string {
	if best := schema.Nearest(name, right); best != "" {
		return " (did you mean " + best + "?)"
	}
	if len(right) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(right))
	return " (there are " + strings.Join(sorted, ", ") + ")"
}
