package sinks

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

var update = flag.Bool("update", false, "write testdata/*.sql anew")

// golden is a table of everything that shows in a statement: names to quote,
// types to cast, a column without which there is no new row.
func golden() *Table {
	return &Table{
		Schema: "shop", Name: "Order", UniqueKeys: [][]string{{"id", "kind"}},
		Columns: []TableColumn{
			{Name: "id", Type: "bigint", BaseType: "bigint", BaseOID: pgtype.Int8OID, Mod: -1, NotNull: true},
			{Name: "kind", Type: "kind", BaseType: "kind", BaseOID: 99999, Mod: -1, NotNull: true, Enum: true},
			{Name: `x"y`, Type: "varchar(3)", BaseType: "character varying", BaseOID: pgtype.VarcharOID, Mod: 7, NotNull: true},
			{Name: "took", Type: "interval", BaseType: "interval", BaseOID: pgtype.IntervalOID, Mod: -1},
			{Name: "total", Type: "numeric(12,2)", BaseType: "numeric", BaseOID: pgtype.NumericOID, Mod: 12<<16 + 2 + 4},
			{Name: "n", Type: "integer", BaseType: "integer", BaseOID: pgtype.Int4OID, Mod: -1, NotNull: true},
		},
	}
}

func targets(t *testing.T, names ...string) []*target {
	t.Helper()
	var out []*target
	for _, name := range names {
		c, ok := golden().Column(name)
		if !ok {
			t.Fatal(name)
		}
		target := newTarget(c, name == "id" || name == "kind")
		out = append(out, &target)
	}
	return out
}

// Proves that the statements are the ones that were reviewed as testdata/*.sql.
func TestStatements(t *testing.T) {
	table := golden()
	all := targets(t, "id", "kind", `x"y`, "took", "total", "n")
	key := targets(t, "id", "kind")
	for name, sql := range map[string]string{
		"insert":                  insertSQL(table, all),
		"insert_copy":             copySQL(table, targets(t, "id", "kind", `x"y`, "total")),
		"insert_partial":          insertSQL(table, targets(t, "id", "kind", `x"y`)),
		"insert_defaults":         defaultsSQL(table),
		"upsert":                  upsertSQL(table, all, []string{`x"y`, "took"}, ""),
		"upsert_key_only":         upsertSQL(table, key, nil, ""),
		"upsert_update":           updateSQL(table, targets(t, "id", "kind", "took", "total"), ""),
		"upsert_update_none":      updateSQL(table, key, ""),
		"upsert_delete":           deleteSQL(table, key, ""),
		"upsert_versioned":        upsertSQL(table, all, []string{`x"y`, "n"}, "n"),
		"upsert_lock":             lockSQL(table, key, "n"),
		"upsert_update_old":       updateSQL(table, targets(t, "id", "kind", "took", "n"), "n"),
		"upsert_delete_old":       deleteSQL(table, targets(t, "id", "kind", "n"), "n"),
		"insert_duplicate":        insertOnceSQL(table, targets(t, "id", "kind", "total", "n"), ConflictDuplicate, false),
		"insert_duplicate_by_key": insertOnceSQL(table, targets(t, "id", "kind", "total", "n"), ConflictDuplicate, true),
		"insert_ignore":           insertOnceSQL(table, targets(t, "id", "kind", "total", "n"), ConflictIgnore, false),
		"insert_present":          presentSQL(table, key),
		"insert_absent":           absentSQL(table, key),
		"ledger_open":             openSQL(table, key),
		"ledger_balances":         balancesSQL(table, key),
		"ledger_entries":          entriesSQL(table, targets(t, "id", "n", "kind", "total", "took")),
		"suspects":                suspectSQL(suspected(), targets(t, "id", "kind", "total", "n"), [][]string{{"n"}, {"total", "n"}}, true),
		"sum":                     sumSQL(table, targets(t, "id", "kind", "total", "n")),
	} {
		path := filepath.Join("testdata", name+".sql")
		if *update {
			if err := os.WriteFile(path, []byte(sql+";\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), sql+";\n"); diff != "" {
			t.Errorf("%s (go test -run Statements -update writes it):\n%s", path, diff)
		}
	}
}

// suspected is the golden table with constraints.
func suspected() *Table {
	table := golden()
	table.constraints = constraints{
		checks: []check{
			{expression: "(total >= (0)::numeric)", columns: []string{"total"}},
			{expression: "(took > n)", columns: []string{"took", "n"}}, // took is not written
		},
		foreign: []foreignKey{{columns: []string{"kind", "n"}, table: `"shop"."Kind"`, found: []string{"kind", "number"}}},
	}
	return table
}
