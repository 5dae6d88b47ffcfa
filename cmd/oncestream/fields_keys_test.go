package main

import (
	"testing"
	"time"
)

// An age may be given in days, with a rest in Go's own way, and is written so;
// what is no age, or none at all, is refused.
func TestParseAge(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0d5s": 5 * time.Second, "12h": 12 * time.Hour, "90m": 90 * time.Minute,
	} {
		got, ok := parseAge(text)
		again, _ := parseAge(got.String())
		if !ok || time.Duration(got) != want || again != got {
			t.Errorf("%q is %v (%v), and again %v", text, got, ok, again)
		}
	}
	for _, text := range []string{"", "0", "0d", "d", "-1d", "1d-2h", "1.5d", "30", "1dd", "99999999d", "day", "-5s"} {
		if got, ok := parseAge(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got := age(36 * time.Hour).String(); got != "1d12h0m0s" {
		t.Errorf("36 hours are %s", got)
	}
}

// Sizes are written in the largest unit that leaves at least 1.
func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 5 << 20: "5 MiB", 3 << 40: "3 TiB", 5000 << 40: "5000 TiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
