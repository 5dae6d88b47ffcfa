package sinks

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// nearest returns the candidate that a person most likely meant by name, or ""
// where none is close: at most a third of the name's letters may differ.
func nearest(name string, candidates []string) string {
	best, least := "", len(name)/3+1
	for _, c := range candidates {
		if strings.EqualFold(c, name) {
			return c
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(c)); d < least {
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
