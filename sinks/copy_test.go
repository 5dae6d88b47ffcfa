package sinks

import (
	"fmt"
	"testing"
)

// Proves which text of PostgreSQL's is read as the number of a row: none of
// another table, and none in another language.
func TestCopyLine(t *testing.T) {
	for where, want := range map[string]string{
		"COPY payment, line 17":                                             "17 true",
		"COPY payment, line 3, column amount":                               "3 true",
		`COPY payment, line 12: "x"`:                                        "12 true",
		"PL/pgSQL function f() line 2 at RAISE\nCOPY payment, line 5":       "5 true",
		"COPY other, line 4":                                                "0 false",
		"COPY payment, Zeile 17":                                            "0 false",
		"SQL statement \"x\"\nPL/pgSQL function COPY payment() line 2 at 1": "0 false",
		"": "0 false",
	} {
		if got := fmt.Sprintln(copyLine(where, "payment")); got != want+"\n" {
			t.Errorf("%q: got %s, want %s", where, got, want)
		}
	}
}
