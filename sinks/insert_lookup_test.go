package sinks_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// firstReported is reported, for a first try.
func firstReported(tb testing.TB, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) (string, error) {
	tb.Helper()
	var said []byte
	err := pgx.BeginFunc(tb.Context(), db.Pool, func(tx pgx.Tx) error {
		outcomes, err := sink.(reporter).ApplyReport(schema.FirstTry(tb.Context()), tx, batch)
		for _, o := range outcomes {
			letter := byte('.')
			if o.Duplicate {
				letter = 'd'
			}
			said = append(said, letter)
		}
		return err
	})
	return string(said), err
}

// Proves that a look-up tells the rows that are there, and those that repeat
// within the batch, in one try and by COPY: by a key of two columns, in rows of
// two shapes, and writes the others in the order of the key.
func TestInsertLookUp(t *testing.T) {
	db, seen := tracedDB(t, `create type mood as enum ('sad', 'ok');
		create table d (at int generated always as identity, id int, feeling mood, note text default 'none', primary key (id, feeling));
		insert into d (id, feeling, note) values (5, 'ok', 'first'), (6, 'ok', 'first'), (7, 'sad', 'first')`)
	fields := schema.NewFields("id", "feeling", "note")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{
		Table: "d", Fields: fields, KeyFields: []string{"id", "feeling"}, OnConflict: sinks.ConflictDuplicate, LookUp: true,
	}))
	lines := make([]string, enough)
	for i := range lines {
		lines[i] = fmt.Sprintf(`1={"id":%d,"feeling":"ok","note":"x"}`, enough-i)
	}
	lines[1] = `1={"id":40,"feeling":"ok","note":"repeat"}`
	lines[2] = `1={"id":40,"feeling":"ok"}` // of another shape
	lines[3] = `1={"id":40,"feeling":"sad"}`
	want := ".dd." + strings.Repeat(".", 30) + "dd...." // 6 and 5 are there, 7 is there for another feeling
	said, err := firstReported(t, db, sink, batch(t, fields, lines...))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, said, want)
	equal(t, strings.Join(seen.seen, "; "), "d id,feeling,note; COPY 35; d id,feeling; COPY 1")
	equal(t, compact(db, `select id, feeling, note from d where id >= 36 order by at`), "36,ok,x 40,ok,x 40,sad,none")
	equal(t, compact(db, `select count(*), count(*) filter (where note = 'repeat') from d`), "39,0")
}

// Proves with random batches that a look-up says and writes what the careful
// statement does, which tells duplicates by the constraint itself.
func TestInsertLookUpEqualsCareful(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table quick (id numeric primary key, v text); create table careful (id numeric primary key, v text)`)
	fields := schema.NewFields("id", "v")
	rapid.Check(t, func(rt *rapid.T) {
		some := func(name string) []schema.Message[schema.Row] {
			ids := rapid.SliceOfN(rapid.SampledFrom([]string{"0", "-0.0", "1", "1.0", "10e-1", "2.5", "-3", "1e3", "1000", "7", "8", "9", "0.1", "-3.0", "11", "12"}), 32, 40).Draw(rt, name)
			lines := make([]string, len(ids))
			for i, id := range ids {
				lines[i] = fmt.Sprintf(`1={"id":%s,"v":"%s %d"}`, id, name, i)
			}
			return batch(t, fields, lines...)
		}
		messages, more := some("first"), some("second")
		db.Exec(`truncate quick, careful`)
		for _, rows := range [][]schema.Message[schema.Row]{messages, more} {
			quick := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "quick", Fields: fields, KeyFields: []string{"id"}, LookUp: true}))
			careful := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "careful", Fields: fields, KeyFields: []string{"id"}}))
			got, err := firstReported(t, db, quick, rows)
			if err != nil {
				rt.Fatal(err)
			}
			want, err := reported(t, db, careful, rows)
			if err != nil {
				rt.Fatal(err)
			}
			got += " " + compact(db, `select id, v from quick order by id`)
			want += " " + compact(db, `select id, v from careful order by id`)
			if got != want {
				rt.Fatalf("the look-up says and writes\n%s\nthe careful statement\n%s", got, want)
			}
		}
	})
}

// Proves that workers which write the same keys at once, each in an order of its
// own, do not wait for each other in a circle: what they meet makes them
// contested, and the careful second try tells each key as fresh once.
func TestInsertLookUpConcurrent(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key)`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}, LookUp: true}))
	const workers, rows = 4, 500
	fresh := make(chan int, workers)
	for range workers {
		lines := make([]string, rows)
		for i, id := range rand.Perm(rows) {
			lines[i] = fmt.Sprintf(`1={"id":%d}`, id)
		}
		messages := batch(t, fields, lines...)
		go func() {
			said, err := firstReported(t, db, sink, messages)
			if schema.IsContested(err) {
				said, err = reported(t, db, sink, messages)
			}
			if err != nil {
				t.Error(err)
			}
			fresh <- rows - strings.Count(said, "d")
		}()
	}
	total := 0
	for range workers {
		total += <-fresh
	}
	equal(t, fmt.Sprint(total, " ", db.Value(`select count(*) from d`)), fmt.Sprint(rows, " ", rows))
}

// Proves that a look-up without a key to look for is refused at the start.
func TestInsertLookUpConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int)`)
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: schema.NewFields("id"), KeyFields: []string{"id"}, LookUp: true}))
	wantText(t, err, "sinks: insert d: a look-up needs on_conflict duplicate and a unique index")
}
