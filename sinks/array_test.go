package sinks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// Proves that a connection which was taught to pass ready arrays on still sends
// and reads arrays as before, for it is the user's too.
func TestConnectionKeepsItsArrays(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table a (i bigint, t text, n numeric, j jsonb)`)
	fields := schema.NewFields("i", "t", "n", "j")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "a", Fields: fields}))
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		for range 2 { // taught, and already taught
			if err := sink.Apply(t.Context(), tx, batch(t, fields, `1={"i":1,"t":"x","n":1.5,"j":[1]}`)); err != nil {
				return err
			}
		}
		var ints []int64
		var texts []string
		err := tx.QueryRow(t.Context(), `select $1::bigint[], $2::text[]`, []int64{1, 2}, []string{"a", "b,c"}).Scan(&ints, &texts)
		if !slices.Equal(ints, []int64{1, 2}) || !slices.Equal(texts, []string{"a", "b,c"}) {
			t.Errorf("got %v and %v", ints, texts)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Proves that the sinks work in the modes in which pgx knows the types of
// parameters, cache_describe being the one for poolers without prepared
// statements, and that Prepare names the remedy in the other two.
func TestQueryModes(t *testing.T) {
	for mode, works := range map[pgx.QueryExecMode]bool{
		pgx.QueryExecModeCacheStatement: true, pgx.QueryExecModeCacheDescribe: true, pgx.QueryExecModeDescribeExec: true,
		pgx.QueryExecModeExec: false, pgx.QueryExecModeSimpleProtocol: false,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			db := tablestest.New(t, tablestest.Configure(func(cfg *pgxpool.Config) { cfg.ConnConfig.DefaultQueryExecMode = mode }))
			db.Exec(`create table kv (k int primary key, v text)`)
			sink := sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kv", Key: []string{"k"}, Fields: kv})
			err := prepare(t, db, sink)
			if !works {
				if err == nil || !strings.Contains(err.Error(), "use cache_statement") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			mustApply(t, db, sink, batch(t, kv, `1={"k":1,"v":"a"}`, `2=`))
			equal(t, compact(db, `select * from kv`), "1,a")
		})
	}
}

// Proves that rows which leave out different columns are written by one
// statement for each set of columns, all of them.
func TestShapes(t *testing.T) {
	db := tablestest.New(t)
	var names, lines []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	db.Exec(`create table wide (` + strings.Join(names, ` int default -1, `) + ` int default -1)`)
	for i := range 1 << 10 {
		var members []string
		for j, name := range names {
			if i&(1<<j) != 0 {
				members = append(members, fmt.Sprintf(`%q:%d`, name, i))
			}
		}
		lines = append(lines, "k={"+strings.Join(members, ",")+"}")
	}
	fields := schema.NewFields(names...)
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "wide", Fields: fields}))
	mustApply(t, db, sink, batch(t, fields, lines...))
	equal(t, compact(db, `select count(*), count(*) filter (where c0 = -1), count(distinct wide) from wide`), "1024,512,1024")
}
