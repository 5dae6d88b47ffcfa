package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// kind names the field's type for people.
func (f field) kind() string {
	switch f.value.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *size:
		return "a size such as 8MiB"
	case *time.Duration:
		return "a duration such as 10s"
	case *age:
		return "a duration such as 30d"
	case *share:
		return "a share such as 0.5"
	case *fingerprint:
		return "value, none or {fields: [...]}"
	case *processor.Start:
		return "earliest, latest or a time"
	case *[]string:
		return "a list of texts"
	case *columns:
		return "columns"
	case *column:
		return "a field or a source"
	case *conversions:
		return "a text or a list of texts"
	case **schema.Value:
		return "a value"
	case *[]sinkConfig:
		return "a list of sinks"
	}
	return "a text"
}

// set takes the value from text and returns the rule that it breaks, or "".
func (f field) set(text string) (rule string) {
	ok := true
	switch to := f.value.(type) {
	case *string:
		*to = text
	case *[]string:
		*to = splitList(text)
	case *bool:
		*to, ok = text == "true", text == "true" || text == "false"
	case *int:
		n, err := strconv.ParseInt(text, 10, 32)
		*to, ok = int(n), err == nil && n > 0
		if err == nil && n <= 0 {
			return "must be positive"
		}
	case *size:
		*to, ok = parseSize(text)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*to, ok = d, err == nil && d > 0
	case *age:
		*to, ok = parseAge(text)
	case *share:
		s, err := strconv.ParseFloat(text, 64)
		*to, ok = share(s), err == nil && s > 0
		if err == nil && !(s > 0 && s <= 1) {
			return "must lie above 0 and not above 1"
		}
	case *fingerprint:
		to.kind, ok = text, text == "value" || text == "none"
	case *processor.Start:
		s, err := processor.ParseStart(text)
		*to, ok = s, err == nil
	}
	switch {
	case !ok:
		return "must be " + f.kind()
	case len(f.choices) > 0 && !slices.Contains(f.choices, text):
		return "must be " + alternatives(f.choices)
	}
	return ""
}

// empty reports whether the field has no value although it was given.
func (f field) empty() bool {
	switch v := f.value.(type) {
	case *string:
		return *v == ""
	case *[]string:
		return len(*v) == 0
	case *columns:
		return len(*v) == 0
	case *[]sinkConfig:
		return len(*v) == 0
	}
	return false
}

// got shows the value that was refused, unless it is a secret.
func (f field) got(text string) string {
	if f.secret {
		return ""
	}
	return fmt.Sprintf(" (got %q)", text)
}

// hint says how else a required field can be given.
func (f field) hint() string {
	var ways []string
	if f.flag != "" {
		ways = append(ways, "--"+f.flag)
	}
	if f.env != "" {
		ways = append(ways, f.env)
	}
	if len(ways) == 0 {
		return ""
	}
	return " (here, or by " + strings.Join(ways, " or ") + ")"
}

// splitList splits the list of a flag or a variable at its commas.
func splitList(text string) []string {
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// parseSize reads a number of bytes: 512, 64KiB, 8MiB, 1GiB.
func parseSize(text string) (size, bool) {
	number, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(number, "B")), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt32/unit {
		return 0, false
	}
	return size(n * unit), true
}

// alternatives joins choices by "or".
func alternatives(choices []string) string {
	if len(choices) == 1 {
		return choices[0]
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// expand puts the variables of the environment in place of ${NAME}; $$ stands
// for a dollar sign.
func (r *reader) expand(at, text string) (string, bool) {
	ok := true
	pattern := regexp.MustCompile(`\$\$|\$\{[^}]*\}?`)
	return pattern.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		name := strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}")
		value, set := r.env(name)
		switch {
		case !strings.HasSuffix(found, "}") || name == "":
			r.failAt(at, "%q is no variable: write ${NAME}, or $$ for a dollar sign", found)
			ok = false
		case !set:
			r.failAt(at, "the environment variable %s is not set", name)
			ok = false
		}
		return value
	}), ok
}
