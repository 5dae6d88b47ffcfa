package sinks

import (
	"fmt"

	"github.com/oncestream/oncestream/schema"
)

// meant returns "; nearest is …" for use in an error, or nothing.
func meant(name string, candidates []string) string {
	if n := schema.Nearest(name, candidates); n != "" {
		return fmt.Sprintf("; nearest is %q", n)
	}
	return ""
}
