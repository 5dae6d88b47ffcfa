package sinks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Proves what the server is sent: the relation comes before the statement, as
// the first of its own queries where it has some, and casts never cut a value.
func TestWrap(t *testing.T) {
	columns := targets(t, "kind", `x"y`, "n")
	relation := "message (\"kind\", \"x\"\"y\", \"n\", ordinality) as (\n" +
		"select u.c1::kind, u.c2, u.c3, u.n\n" +
		"from unnest($1::text[], $2::text[], $3::integer[]) with ordinality as u(c1, c2, c3, n))"
	for statement, want := range map[string]string{
		"select 1 from message":                         "with " + relation + "\nselect 1 from message",
		" -- why\nWith a as (select 1) select * from a": "with " + relation + ",\n a as (select 1) select * from a",
		"with/**/RECURSIVE a as (select 1) table a":     "with recursive " + relation + ",\n a as (select 1) table a",
		"within":  "with " + relation + "\nwithin",
		"/* open": "with " + relation + "\n/* open",
		"":        "with " + relation + "\n",
	} {
		if diff := cmp.Diff(want, wrap(statement, columns).sql); diff != "" {
			t.Errorf("%q:\n%s", statement, diff)
		}
	}
	domain := *columns[2]
	domain.Domain = "positive"
	if diff := cmp.Diff("with message (\"n\", ordinality) as (\nselect u.c1::positive, u.n\nfrom unnest($1::integer[]) with ordinality as u(c1, n))\nselect", wrap("select", []*target{&domain}).sql); diff != "" {
		t.Error(diff)
	}
}
