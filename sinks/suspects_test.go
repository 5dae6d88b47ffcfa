package sinks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

type suspecter interface {
	Suspects(ctx context.Context, tx pgx.Tx, batch []schema.Message[schema.Row]) ([]int, error)
}

// suspects are the places that the sink suspects.
func suspects(tb testing.TB, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) (places []int) {
	tb.Helper()
	err := pgx.BeginFunc(tb.Context(), db.Pool, func(tx pgx.Tx) (err error) {
		places, err = sink.(suspecter).Suspects(tb.Context(), tx, batch)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return places
}

// refused are the places of the messages that the sink cannot apply one by one.
func refused(tb testing.TB, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) (places []int) {
	tb.Helper()
	tx, err := db.Pool.Begin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(tb.Context())) //nolint:errcheck // nothing is to stay
	for i := range batch {
		err := pgx.BeginFunc(tb.Context(), tx, func(tx pgx.Tx) error { return sink.Apply(tb.Context(), tx, batch[i:i+1]) })
		if err != nil {
			places = append(places, i)
		}
	}
	return places
}

const suspectTables = `create table region (land text, code int, primary key (land, code));
insert into region values ('a', 1), ('b', 2);
create table held (
	"id" int primary key, "n" int constraint small check (n < 5), land text, code int, mail text unique, "$odd" int,
	check ("$odd" is null or "$odd" > n), foreign key (land, code) references region
);
insert into held values (100, 1, 'a', 1, 'm0', 3)`

// Proves that whom the table refuses is suspected, whatever the rows: by checks,
// foreign keys, rows that are there and rows of the same batch, with nulls,
// missing fields and several shapes; and that a suspicion has a ground: where
// none is refused, none is suspected, but for rows that an insert leaves out
// without looking at them.
func TestSuspects(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(suspectTables)
	fields := schema.NewFields("id", "n", "land", "code", "mail", "$odd")
	columns := func() (all []sinks.Column[schema.Row]) {
		for _, name := range fields.Paths() {
			all = append(all, sinks.Field(name, name))
		}
		return all
	}
	for name, sink := range map[string]sinks.Sink[schema.Row]{
		"insert":           &sinks.Insert[schema.Row]{Table: "held", Columns: columns(), OnConflict: sinks.ConflictError},
		"insert duplicate": &sinks.Insert[schema.Row]{Table: "held", Columns: columns(), KeyFields: []string{"id"}},
		"insert ignore":    &sinks.Insert[schema.Row]{Table: "held", Columns: columns(), OnConflict: sinks.ConflictIgnore},
		"upsert":           &sinks.Upsert[schema.Row]{Table: "held", Columns: columns(), Key: []string{"id"}},
	} {
		t.Run(name, func(t *testing.T) {
			prepared(t, db, sink)
			rapid.Check(t, func(r *rapid.T) {
				rows := batch(t, fields, drawnRows(r, name == "upsert")...)
				bad, suspected := refused(t, db, sink, rows), suspects(t, db, sink, rows)
				for _, place := range bad {
					if !slices.Contains(suspected, place) {
						r.Errorf("%d is refused and was not suspected; suspects %v", place, suspected)
					}
				}
				if (name == "insert" || name == "upsert") && len(bad) == 0 && len(suspected) > 0 {
					r.Errorf("suspects %v, and all are applied", suspected)
				}
			})
		})
	}
}

// drawnRows draws lines of a batch; with distinct no two rows meet in it, for an
// upsert suspects only by what is in the table.
func drawnRows(r *rapid.T, distinct bool) (lines []string) {
	field := func(name string, values ...string) string {
		if v := rapid.SampledFrom(append(values, "")).Draw(r, name); v != "" {
			return fmt.Sprintf(`,%q:%s`, name, v)
		}
		return ""
	}
	for i := range rapid.IntRange(0, 6).Draw(r, "rows") {
		id := rapid.SampledFrom([]int{i, i, i, 100, 0}).Draw(r, "id")
		mail := field("mail", `"m0"`, `"m1"`, `"m2"`, `null`)
		if distinct {
			id, mail = i, field("mail", `"m0"`, fmt.Sprintf(`"own%d"`, i))
		}
		lines = append(lines, fmt.Sprintf(`1={"id":%d%s%s%s%s%s}`, id, field("n", "1", "2", "7", "null"),
			field("land", `"a"`, `"x"`, "null"), field("code", "1", "2"), mail, field("$odd", "1", "9", "null")))
	}
	return lines
}

// Proves that the sinks around others ask them: a where for the messages that it
// lets pass, a tee for all of its sinks, a refresh for its own; and that what
// cannot be encoded is left to the attempt, which names it.
func TestSuspectsOfSinksAround(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(suspectTables + `; create table note (id int primary key, n int check (n <> 2))`)
	fields := schema.NewFields("id", "n")
	where, err := sinks.Condition("id > 1", fields)
	if err != nil {
		t.Fatal(err)
	}
	sink := sinks.Refresh[schema.Row](sinks.Tee[schema.Row](
		sinks.Where[schema.Row](&sinks.Insert[schema.Row]{Table: "held", Fields: fields}, where),
		&sinks.Upsert[schema.Row]{Table: "note", Fields: fields, Key: []string{"id"}},
		&sinks.Sum[schema.Row]{Table: "note", Key: []sinks.Column[schema.Row]{sinks.Field("id", "id")}, Add: []sinks.Column[schema.Row]{sinks.Field("n", "n")}},
	), -1)
	prepared(t, db, sinks.Sink[schema.Row](sink))
	rows := batch(t, fields, `1={"id":1,"n":9}`, `1={"id":2,"n":9}`, `1={"id":3,"n":"much"}`, `1={"id":4,"n":2}`, `1={"id":100,"n":1}`)
	equal(t, fmt.Sprint(suspects(t, db, sink, rows)), "[1 3 4]")
}
