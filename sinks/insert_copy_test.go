package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// enough is a number of messages for which COPY pays.
const enough = 40

// copies is a pgx tracer that tells what a pool has written by COPY.
type copies struct{ seen []string }

func (c *copies) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}
func (c *copies) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *copies) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	c.seen = append(c.seen, data.TableName[len(data.TableName)-1]+" "+strings.Join(data.ColumnNames, ","))
	return ctx
}

func (c *copies) TraceCopyFromEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	c.seen = append(c.seen, data.CommandTag.String())
}

// tracedDB is a schema of the test's own, and what is copied into it.
func tracedDB(t *testing.T, setup string) (*tablestest.DB, *copies) {
	t.Helper()
	seen := &copies{}
	db := tablestest.New(t, tablestest.Configure(func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = seen }))
	db.Exec(setup)
	return db, seen
}

// numbered are messages of ids from 1, with the given ones in place of some.
func numbered(t *testing.T, fields *schema.Fields, instead map[int]string) []schema.Message[schema.Row] {
	t.Helper()
	lines := make([]string, enough)
	for i := range lines {
		lines[i] = fmt.Sprintf(`%d={"id":%d}`, i, i+1)
		if payload, ok := instead[i]; ok {
			lines[i] = fmt.Sprintf("%d=%s", i, payload)
		}
	}
	return batch(t, fields, lines...)
}

// applyFirst applies the batch as the engine does for the first time.
func applyFirst(t *testing.T, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return sink.Apply(schema.FirstTry(t.Context()), tx, batch)
	})
}

// Proves that a batch is copied in its order, one COPY for each shape, with the
// defaults of what is missing, and that a tracer sees it.
func TestInsertCopies(t *testing.T) {
	db, seen := tracedDB(t, `create type mood as enum ('sad', 'ok'); create domain price as numeric(10,2) check (value > 0);
		create table d (at int generated always as identity, id int primary key, feeling mood, cost price default 7, note text default 'none')`)
	fields := schema.NewFields("id", "feeling", "cost", "note")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields}))
	mustApply(t, db, sink, numbered(t, fields, map[int]string{
		0: `{"id":900,"feeling":"ok","cost":1.5,"note":null}`, 1: `{"id":800}`, 2: `{"id":700,"feeling":"sad","cost":2,"note":"x"}`,
	}))
	equal(t, compact(db, `select id, coalesce(feeling::text, '-'), cost, coalesce(note, '-') from d where id >= 700 order by at`),
		"900,ok,1.50,- 700,sad,2.00,x 800,-,7.00,none")
	equal(t, db.Value(`select count(*) from d`), fmt.Sprint(enough))
	equal(t, strings.Join(seen.seen, "; "), "d id,feeling,cost,note; COPY 2; d id,feeling; COPY 38")
}

// Proves that an insert stays where COPY would be refused, would skip a check or
// needs a cast, and that the rows arrive.
func TestInsertDoesNotCopy(t *testing.T) {
	for name, setup := range map[string]string{
		"rule":            `create table d (id int); create rule r as on delete to d do also notify gone`,
		"view":            `create table base (id int); create view d as select id from base`,
		"cast":            `create table d (id inet[], n int)`,
		"domain left out": `create domain filled as text check (length(value) > 0); create table d (id int, note filled)`,
	} {
		t.Run(name, func(t *testing.T) {
			db, seen := tracedDB(t, setup)
			sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Columns: []sinks.Column[schema.Row]{
				sinks.Constant[schema.Row]("id", schema.Value{Kind: schema.Null}),
			}}))
			mustApply(t, db, sink, numbered(t, schema.NewFields("id"), nil))
			equal(t, fmt.Sprint(db.Value(`select count(*) from d`), " ", len(seen.seen)), "40 0")
		})
	}
}

// Proves that a table whose policies bind the role is not copied into, which
// PostgreSQL refuses, and that the same table is copied into by a role that they
// do not bind.
func TestInsertCopyAndPolicies(t *testing.T) {
	db, seen := tracedDB(t, `create table d (id int); alter table d enable row level security; create policy all_rows on d using (true) with check (true)`)
	role := "copier_" + db.Value(`select current_schema()`)
	db.Exec(fmt.Sprintf(`create role %[1]s; grant usage on schema %[2]s to %[1]s; grant all on d to %[1]s`, role, db.Value(`select current_schema()`)))
	defer db.Exec(fmt.Sprintf(`drop owned by %[1]s; drop role %[1]s`, role))
	fields := schema.NewFields("id")
	sink := &sinks.Insert[schema.Row]{Table: "d", Fields: fields}
	for who, want := range map[string]int{role: 0, "none": 2} {
		err := db.Pool.AcquireFunc(t.Context(), func(c *pgxpool.Conn) error {
			return pgx.BeginFunc(t.Context(), c, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "set local role "+who); err != nil {
					return err
				}
				return errors.Join(sink.Prepare(t.Context(), tx.Conn()), sink.Apply(t.Context(), tx, numbered(t, fields, nil)))
			})
		})
		if err != nil || len(seen.seen) != want {
			t.Errorf("as %s: %v, %q", who, err, seen.seen)
		}
		seen.seen = nil
	}
}

// Proves that a first try names the row that PostgreSQL refuses, with the reason
// of each kind of constraint, that later tries name none (their number would grow
// with the rows at fault), and that a foreign key, which is checked behind the
// rows, names none.
func TestInsertCopyNamesLine(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create type mood as enum ('sad', 'ok'); create domain filled as text check (value <> 'empty'); create table other (id int primary key);
		create table d (id int primary key, n int check (n > 0), feeling mood, note filled, other int references other, copied int not null);
		create function copied() returns trigger language plpgsql as 'begin new.copied := nullif(new.id, 666); return new; end';
		create trigger copied before insert on d for each row execute function copied();
		insert into d values (77)`)
	fields := schema.NewFields("id", "n", "feeling", "note", "other", "copied")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields}))
	for payload, want := range map[string]string{
		`{"id":100,"n":0}`:             "17 check 23514",
		`{"id":77}`:                    "17 unique 23505",
		`{"id":16}`:                    "17 unique 23505",
		`{"id":666}`:                   "17 not_null 23502",
		`{"id":100,"feeling":"happy"}`: "17 value_range 22P02",
		`{"id":100,"note":"empty"}`:    "17 check 23514",
		`{"id":100,"other":5}`:         "none 23503",
	} {
		messages := numbered(t, fields, map[int]string{16: `{"id":1000}`, 17: payload})
		for i := range messages { // one shape, so that the rows' order is the batch's
			for n, v := range messages[i].Body.Values {
				if v.Kind == schema.Missing {
					messages[i].Body.Values[n] = schema.Value{Kind: schema.Null}
				}
			}
			messages[i].Body.Values[5] = schema.Value{Kind: schema.Number, Raw: []byte("1")}
		}
		err := applyFirst(t, db, sink, messages)
		got := "none"
		if f, ok := asFault(err); ok {
			got = fmt.Sprint(f.Record.Offset, " ", f.Reason)
		}
		equal(t, got+" "+sqlstate(t, err), want)
		err = apply(t, db, sink, messages)
		if _, ok := asFault(err); ok || sqlstate(t, err) != want[len(want)-5:] {
			t.Errorf("%s: a later try says %v", payload, err)
		}
	}
}

// Proves that a trigger's failure, of which the row is told too, is blamed on no
// message: the same trigger fails for all.
func TestInsertCopyBrokenTrigger(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int);
		create function broken() returns trigger language plpgsql as 'begin perform from gone; return new; end';
		create trigger broken before insert on d for each row execute function broken()`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields}))
	err := applyFirst(t, db, sink, numbered(t, fields, nil))
	equal(t, sqlstate(t, err), "42P01")
	if _, ok := asFault(err); ok {
		t.Errorf("a message is blamed: %v", err)
	}
}

// Proves that a transaction which has ended takes no rows: COPY would write them
// for good.
func TestInsertCopyEnded(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int)`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields}))
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tx, err := conn.Begin(t.Context())
	if err = errors.Join(err, tx.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := sink.Apply(t.Context(), tx, numbered(t, fields, nil)); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("got %v", err)
	}
	equal(t, db.Value(`select count(*) from d`), "0")
}

// Proves the two tries of a rule that gives a conflict a meaning: the first one
// copies and says that it met something, whatever the constraint is; the second
// one tells whom, as ever.
func TestInsertContested(t *testing.T) {
	for rule, setup := range map[sinks.ConflictRule]string{
		sinks.ConflictDuplicate: `create table d (id int primary key)`,
		sinks.ConflictIgnore:    `create table d (id int, exclude (id with =))`,
	} {
		db, seen := tracedDB(t, setup)
		fields := schema.NewFields("id")
		sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, OnConflict: rule, KeyFields: []string{"id"}}))
		if err := applyFirst(t, db, sink, numbered(t, fields, nil)); err != nil {
			t.Fatal(err)
		}
		equal(t, strings.Join(seen.seen, "; "), "d id; COPY 40")
		again := numbered(t, fields, map[int]string{5: `{"id":100}`})
		err := applyFirst(t, db, sink, again)
		if !schema.IsContested(err) || errors.As(err, new(*pgconn.PgError)) {
			t.Errorf("%s: want a contested batch, got %v", rule, err)
		}
		mustReport(t, db, sink, again, "ddddd."+strings.Repeat("d", enough-6))
	}
}

// Proves that a row which a trigger drops is no success of a first try where
// it may be a duplicate.
func TestInsertContestedByTrigger(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table d (id int primary key);
		create function drop_row() returns trigger language plpgsql as 'begin return case when new.id <> 7 then new end; end';
		create trigger t before insert on d for each row execute function drop_row()`)
	fields := schema.NewFields("id")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Insert[schema.Row]{Table: "d", Fields: fields, KeyFields: []string{"id"}}))
	err := applyFirst(t, db, sink, numbered(t, fields, nil))
	if !schema.IsContested(err) || !strings.Contains(err.Error(), "39 of 40 rows") {
		t.Errorf("got %v", err)
	}
}
