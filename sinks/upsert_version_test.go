package sinks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

var versioned = schema.NewFields("k", "v", "w", "n")

func versionedUpsert(rule sinks.TombstoneRule, version sinks.Column[schema.Row]) *sinks.Upsert[schema.Row] {
	return &sinks.Upsert[schema.Row]{
		Table: "kv", Key: []string{"k"}, Version: version.Name, Tombstone: rule,
		Columns: []sinks.Column[schema.Row]{sinks.Field("k", "k"), sinks.Field("v", "v"), sinks.Field("w", "w"), version},
	}
}

// Proves that an older message leaves the row alone and is told as stale, that
// one of the same version is written, and that a null version is older than any.
func TestUpsertVersion(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text, w text, n bigint); insert into kv values (1, 'old', 'old', 5), (2, 'old', 'old', null)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](versionedUpsert(sinks.TombstoneError, sinks.Field("n", "n"))))
	mustReport(t, db, sink, batch(t, versioned,
		`1={"k":1,"v":"a","n":4}`, `2={"k":2,"v":"b","n":-1}`, `1={"k":1,"v":"c","n":5}`, `1={"k":1,"w":"d","n":4}`, `3={"k":3,"n":1}`), "s..s.")
	equal(t, compact(db, `select k, coalesce(v, '-'), coalesce(w, '-'), n from kv order by k`), "1,c,old,5 2,b,old,-1 3,-,-,1")
	equal(t, faultsOf(t, apply(t, db, sink, batch(t, versioned, `1={"k":1}`, `1={"k":1,"n":null}`, `1=`))),
		"0 not_null n n\n1 not_null n n\n2 tombstone  \n")
}

// Proves that a tombstone honours the version.
func TestUpsertVersionTombstone(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text, w text, n bigint); insert into kv values (1, 'new', '', 100), (2, 'old', '', 1), (3, 'none', '', null)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](versionedUpsert("", sinks.Field("n", "$offset"))))
	mustReport(t, db, sink, batch(t, versioned, `9={"k":9}`, `1=`, `2=`, `3=`, `4=`, `2={"k":2,"v":"again"}`), ".s....")
	equal(t, compact(db, `select k, coalesce(v, '-'), n from kv order by k`), "1,new,100 2,again,5 9,-,0")
}

// Proves the order of versions in each type that may hold one, against
// PostgreSQL's own.
func TestUpsertVersionTypes(t *testing.T) {
	for kind, values := range map[string][]string{
		"smallint":    {"-32768", "-1", "0", "1", "256"},
		"int":         {"-70000", "-256", "0", "255", "70000"},
		"bigint":      {"-9223372036854775808", "-1", "0", "9223372036854775807"},
		"numeric":     {"-100000.5", "-100000.25", "-0.001", "0", "0.00001", "0.5", "0.51", "9999", "10000", "123456789012345678901234567890"},
		"date":        {`"-infinity"`, `"1999-01-01"`, `"2026-01-02"`, `"infinity"`},
		"timestamp":   {`"1999-01-01T00:00:00"`, `"2026-01-02T03:04:05.000001"`},
		"timestamptz": {`"1969-12-31T23:59:59Z"`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05-01:00"`},
		"uuid":        {`"0198c0de-0000-7000-8000-000000000001"`, `"f198c0de-0000-7000-8000-000000000001"`},
	} {
		t.Run(kind, func(t *testing.T) {
			db := tablestest.New(t)
			db.Exec(`create table kv (k int primary key, v text, w text, n ` + kind + `)`)
			sink := prepared(t, db, sinks.Sink[schema.Row](versionedUpsert(sinks.TombstoneIgnore, sinks.Field("n", "n"))))
			for i := 1; i < len(values); i++ {
				less, more := fmt.Sprintf(`1={"k":%d,"n":%s}`, i, values[i-1]), fmt.Sprintf(`1={"k":%d,"n":%s}`, i, values[i])
				mustReport(t, db, sink, batch(t, versioned, less, more, less), "..s") // in memory
				mustReport(t, db, sink, batch(t, versioned, less), "s")               // and with the row
			}
		})
	}
}

// Proves that a batch with versions does what its messages do one by one, in
// what is stored and in what is said: writes of parts, nulls and tombstones, old
// and new, however the log is cut.
func TestUpsertVersionAgainstModel(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text, w text, n bigint)`)
	version := sinks.Field("n", "$header.n")
	sink := prepared(t, db, sinks.Sink[schema.Row](versionedUpsert("", version)))
	rapid.Check(t, func(rt *rapid.T) {
		type row struct {
			v, w string
			n    int
		}
		model := map[int]row{}
		var lines []string
		var headers []int
		want := ""
		for range rapid.IntRange(1, 12).Draw(rt, "count") {
			k, n := rapid.IntRange(1, 2).Draw(rt, "k"), rapid.IntRange(1, 5).Draw(rt, "n")
			headers = append(headers, n)
			said, payload := ".", ""
			old, there := model[k]
			stale := there && old.n > n
			if stale {
				said = "s"
			}
			r := old
			r.n = n
			switch rapid.SampledFrom([]string{"v", "w", "both", "null", "tombstone"}).Draw(rt, "what") {
			case "tombstone":
				if !stale {
					delete(model, k)
				}
				lines, want = append(lines, fmt.Sprintf("%d=", k)), want+said
				continue
			case "v":
				r.v, payload = "x", `,"v":"x"`
			case "w":
				r.w, payload = "y", `,"w":"y"`
			case "both":
				r.v, r.w, payload = "p", "q", `,"v":"p","w":"q"`
			case "null":
				r.v, payload = "", `,"v":null`
			}
			if !stale {
				model[k] = r
			}
			lines, want = append(lines, fmt.Sprintf(`%d={"k":%d%s}`, k, k, payload)), want+said
		}
		messages := batch(t, versioned, lines...)
		for i, n := range headers {
			messages[i].Headers = []schema.Header{{Key: "n", Value: fmt.Append(nil, n)}}
		}
		db.Exec(`truncate kv`)
		cut := rapid.IntRange(0, len(messages)).Draw(rt, "cut")
		var all []string
		for _, part := range [][]schema.Message[schema.Row]{messages[:cut], messages[cut:]} {
			said, err := reported(t, db, sink, part)
			if err != nil {
				rt.Fatal(err)
			}
			if said == "" {
				said = strings.Repeat(".", len(part))
			}
			all = append(all, said)
		}
		if got := strings.Join(all, ""); got != want {
			rt.Fatalf("said %s, want %s", got, want)
		}
		var rows []string
		for k, r := range model {
			rows = append(rows, fmt.Sprintf("%d,%s,%s,%d", k, r.v, r.w, r.n))
		}
		if got := compact(db, `select k, coalesce(v, ''), coalesce(w, ''), n from kv order by k`); got != joinSorted(rows) {
			rt.Fatalf("got %s, want %s", got, joinSorted(rows))
		}
	})
}

// between is a tracer that calls f once, after the first statement that locks.
type between struct {
	f    func()
	lock bool // the statement that runs is the one
}

func (b *between) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	b.lock = b.f != nil && strings.HasSuffix(data.SQL, "for update of t")
	return ctx
}

func (b *between) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	if f := b.f; b.lock {
		b.f = nil
		f()
	}
}

// Proves that a row which another worker inserts between the look at its version
// and the write is not set back: the batch fails, to be tried again, and no
// message is blamed, also where one has to find its row there.
func TestUpsertVersionRace(t *testing.T) {
	for _, payload := range []string{`{"k":1,"v":"mine","n":5}`, `{"k":1,"n":5}`} {
		trace := &between{}
		db := tablestest.New(t, tablestest.Configure(func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = trace }))
		db.Exec(`create table kv (k int primary key, v text not null, w text, n bigint)`)
		sink := prepared(t, db, sinks.Sink[schema.Row](versionedUpsert(sinks.TombstoneIgnore, sinks.Field("n", "n"))))
		messages := batch(t, versioned, `0={"k":0,"v":"first","n":1}`, `1=`+payload)
		trace.f = func() { db.Exec(`insert into kv values (1, 'other', '', 10)`) }
		err := apply(t, db, sink, messages)
		if _, ok := asFault(err); ok {
			t.Errorf("a message is blamed: %v", err)
		}
		wantText(t, err, "another worker has meanwhile written")
		equal(t, compact(db, `select k, v, n from kv`), "1,other,10")
		mustReport(t, db, sink, messages, ".s")
	}
}

// Proves what Prepare refuses.
func TestUpsertVersionConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text, w text, n bigint)`)
	refuses := func(s *sinks.Upsert[schema.Row], want string) {
		t.Helper()
		wantText(t, prepare(t, db, sinks.Sink[schema.Row](s)), "sinks: upsert kv: ", want)
	}
	refuses(versionedUpsert("", sinks.Field("n", "n")), `version column "n" is written from field n, which a tombstone does not have`)
	s := versionedUpsert("", sinks.Field("n", "$offset"))
	s.Version = "v"
	refuses(s, `version column "v" is a text`)
	s.Version = "k"
	refuses(s, `version column "k" is part of the key`)
	s.Version = "x"
	refuses(s, `version column "x" is not written`)
}

// Proves case C36: a swap of two unique values by way of a third. In one batch
// the state between is folded away, and PostgreSQL refuses the swap; nothing is
// written, and no other row is ever hit. One message at a time it ends right,
// which is what the engine comes to.
func TestUpsertUniqueSwap(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table users (id int primary key, email text not null constraint users_email unique);
		insert into users values (1, 'a@example.test'), (2, 'b@example.test')`)
	fields := schema.NewFields("id", "email")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "users", Key: []string{"id"}, Fields: fields}))
	messages := batch(t, fields,
		`1={"id":1,"email":"tmp@example.test"}`, `2={"id":2,"email":"a@example.test"}`, `1={"id":1,"email":"b@example.test"}`)
	err := apply(t, db, sink, messages)
	equal(t, sqlstate(t, err), "23505")
	wantText(t, err, "users_email")
	equal(t, compact(db, `select * from users order by id`), "1,a@example.test 2,b@example.test")

	// As from two partitions, where the second is first: it fails, and comes again.
	equal(t, sqlstate(t, apply(t, db, sink, messages[1:2])), "23505")
	for i := range messages {
		mustApply(t, db, sink, messages[i:i+1])
	}
	equal(t, compact(db, `select * from users order by id`), "1,b@example.test 2,a@example.test")
}
