package processor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// bookkeeping are the tables of bookSink: a serial column, a partitioned table, a
// foreign key, a trigger that writes to a further table, times of insertion.
const bookkeeping = `create table kind (kind text primary key);
insert into kind values ('m'), ('n'), ('bad');
create table booking (no bigserial primary key, id text not null unique, kind text not null references kind, amount numeric, booked_at timestamptz not null default now(),
	check (kind <> 'bad'));
create table daily (day int not null, id text not null, primary key (day, id)) partition by range (day);
create table daily_low partition of daily for values from (0) to (5);
create table daily_high partition of daily default;
create table audit (what text not null);
create table total (kind text primary key, n bigint not null);
create function note() returns trigger language plpgsql as $$
begin insert into audit values ('booked ' || new.id); return new; end $$;
create trigger noted after insert on booking for each row execute function note()`

// booked are the tables that bookSink writes to.
var booked = []string{"booking", "daily", "audit", "total"}

// bookSink writes each message to all of the tables: m12 is the twelfth of kind m.
var bookSink = sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	for i := range batch {
		id := batch[i].Body
		kind := strings.TrimRight(id, "0123456789")
		if kind == "refused" {
			return schema.Faultf(batch[i].Record, schema.ReasonHandler, "refused")
		}
		if _, err := tx.Exec(ctx, `insert into booking (id, kind, amount) values ($1, $2, length($1))`, id, kind); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into daily values (length($1), $1)`, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into total as t values ($1, 1) on conflict (kind) do update set n = t.n + 1`, kind); err != nil {
			return err
		}
	}
	return nil
})

// shadowName is the schema of a world's shadow, which goes with the test.
func (w *world) shadowName() string {
	name := "s" + w.db.Schema[len(w.db.Schema)-12:]
	w.tb.Cleanup(func() {
		for _, suffix := range []string{"", "_ledger", "_live"} {
			w.db.Exec("drop schema if exists " + name + suffix + " cascade")
		}
	})
	return name
}

// shadowed replays everything into a shadow.
func (w *world) shadowed(p *processor.Processor, o processor.ShadowOptions) processor.ShadowReport {
	w.tb.Helper()
	report, err := w.tryShadow(p, processor.Range{}, o)
	must(w.tb, err)
	return report
}

func (w *world) tryShadow(p *processor.Processor, r processor.Range, o processor.ShadowOptions) (processor.ShadowReport, error) {
	w.tb.Helper()
	if o.Tables == nil {
		o.Tables = booked
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.Shadow(ctx, r, o)
}

// newBooks is a world with three partitions of bookings, duplicates and dead
// letters among them, that has been read.
func newBooks(t *testing.T) (*world, *processor.Processor) {
	t.Helper()
	w := newWorld(t, 3)
	w.db.Exec(bookkeeping)
	for p := range int32(3) {
		w.produce(p, numbered(fmt.Sprintf("m%d", p), 40)...)
		w.produce(p, processortest.Values(fmt.Sprintf("m%d7", p), "bad1", "refused")...)
		w.produce(p, numbered(fmt.Sprintf("n%d", p), 20)...)
	}
	cfg := w.config()
	cfg.Batch.MaxRecords = 7
	p := newProcessor(t, cfg, texts(bookSink))
	toEnd(t, p)
	return w, p
}

// scratches lists the schemas that a shadow has left.
func (w *world) scratches(name string) string {
	return w.db.Value(`select coalesce(string_agg(nspname, ' ' order by nspname), '') from pg_namespace where nspname like $1`, name+"%")
}

// live is all that a shadow must not change.
func (w *world) live() string {
	var b strings.Builder
	for _, table := range []string{"booking", "daily", "audit", "total", "kind", "consumer_offset", "dead_letter", "processed_message", "handler"} {
		fmt.Fprintln(&b, table, w.db.Value("select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') from "+table+" t"))
	}
	return b.String() + w.db.Dump("select sequencename, last_value from pg_sequences where schemaname = $1 order by 1", w.db.Schema)
}

// Proves that an untouched history gives no difference: serial numbers and times
// that differ are told and do not count, a trigger writes to the copy of its
// table, what was set aside is set aside again; that no live row, sequence or
// offset is changed; and that the shadow is there to be looked at.
func TestShadowOfIntactHistory(t *testing.T) {
	w, p := newBooks(t)
	before := w.live()
	name := w.shadowName()
	report := w.shadowed(p, processor.ShadowOptions{Schema: name})
	if !report.Clean() || report.Compacted || len(report.Notes) > 0 || len(report.LeftOut) > 0 || len(report.Tables) != 4 {
		t.Errorf("%v %+v", report, report)
	}
	want := "rebuilt 180 effects of 189 records of 3 partitions (3 duplicates, 6 dead letters): no difference in 4 tables"
	if got := report.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if after := w.live(); after != before {
		t.Errorf("the live side has changed:\n%s\nwas\n%s", after, before)
	}
	if got := w.scratches(name); got != name+" "+name+"_ledger" {
		t.Errorf("schemas: %s", got)
	}
	if got := w.db.Value(`select count(*) from ` + name + `.booking`); got != "180" {
		t.Errorf("%s rebuilt bookings", got)
	}
	strict := w.shadowed(p, processor.ShadowOptions{Schema: name, Strict: true, Replace: true, Drop: true})
	if strict.Clean() {
		t.Error("the times of booking do not differ, counted strictly")
	}
	if got := w.scratches(name); got != "" {
		t.Errorf("schemas after a drop: %s", got)
	}
	toEnd(t, p) // the sink finds the live tables again
}

// difference returns the comparison of a table.
func difference(t *testing.T, r processor.ShadowReport, table string) processor.TableDifference {
	t.Helper()
	for _, d := range r.Tables {
		if d.Right.Table == table {
			return d
		}
	}
	t.Fatalf("no comparison of %s", table)
	panic("unreachable")
}

// examples writes the examples of a difference.
func examples(d processor.TableDifference, columns ...string) string {
	text := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	var all []string
	for _, e := range d.Examples {
		line := []string{e.Kind}
		for _, k := range e.Key {
			line = append(line, k.Name+"="+text(k.Value))
		}
		for _, c := range e.Columns {
			if slices.Contains(columns, c.Name) {
				line = append(line, c.Name+":"+text(c.Left)+"|"+text(c.Right))
			}
		}
		all = append(all, strings.Join(line, " "))
	}
	return strings.Join(all, "\n")
}

// Proves that a row that was changed, one that was deleted and one that was added
// by hand are each named by table, key and values, in ordinary and partitioned
// tables and in one without a key.
func TestShadowFindsWhatWasDoneByHand(t *testing.T) {
	w, p := newBooks(t)
	w.db.Exec(`update booking set amount = 999 where id = 'm117';
		delete from booking where id = 'm05';
		insert into booking (id, kind, amount) values ('by hand', 'm', 1);
		delete from daily where id = 'n03';
		update total set n = n + 5 where kind = 'm'`)
	report := w.shadowed(p, processor.ShadowOptions{Schema: w.shadowName(), Drop: true})
	if report.Clean() {
		t.Fatal("no difference was found")
	}
	if got := examples(difference(t, report, "booking"), "amount"); got != "extra id=by hand amount:null|1\nmissing id=m05 amount:3|null\ndifferent id=m117 amount:4|999" {
		t.Errorf("booking:\n%s", got)
	}
	if got := examples(difference(t, report, "daily")); got != "missing day=3 id=n03" {
		t.Errorf("daily:\n%s", got)
	}
	if got := examples(difference(t, report, "audit")); got != "extra what=booked by hand" {
		t.Errorf("audit:\n%s", got)
	}
	if got := examples(difference(t, report, "total"), "n"); got != "different kind=m n:120|125" {
		t.Errorf("total:\n%s", got)
	}
	if missing, extra, different := report.Rows(); missing != 2 || extra != 2 || different != 2 {
		t.Errorf("%d missing, %d extra, %d different", missing, extra, different)
	}
}

// Proves that a processor which goes on while the shadow is rebuilt makes no
// difference: what it has read since is rebuilt too, at last against the live
// rows of one moment.
func TestShadowOfMovingTables(t *testing.T) {
	w, p := newBooks(t)
	live := newProcessor(t, w.config(), texts(bookSink))
	rounds := 0
	r := processor.Range{Progress: func(done, total int64) {
		if done == total && rounds < 5 { // as often as the shadow believes to have caught up
			rounds++
			w.produce(int32(rounds%3), numbered(fmt.Sprintf("m9%d", rounds), 10)...)
			toEnd(t, live)
		}
	}}
	name := w.shadowName()
	report, err := w.tryShadow(p, r, processor.ShadowOptions{Schema: name})
	must(t, err)
	if !report.Clean() || report.Advanced != 30 || report.Effects != 210 {
		t.Errorf("%v, advanced by %d", report, report.Advanced)
	}
	if rounds != 4 {
		t.Errorf("the processor has moved %d times, want once for each time that the shadow has caught up", rounds)
	}
	if got := w.scratches(name); got != name+" "+name+"_ledger" {
		t.Errorf("schemas: %s", got)
	}
}

// Proves that a shadow never takes a schema that is not its own, and one of its
// own only when told so.
func TestShadowSchemaExists(t *testing.T) {
	w, p := newBooks(t)
	_, err := w.tryShadow(p, processor.Range{}, processor.ShadowOptions{Schema: w.db.Schema, Replace: true})
	if !errors.Is(err, tables.ErrNotScratch) {
		t.Errorf("into the live schema: %v", err)
	}
	name := w.shadowName()
	w.shadowed(p, processor.ShadowOptions{Schema: name})
	_, err = w.tryShadow(p, processor.Range{}, processor.ShadowOptions{Schema: name})
	if !errors.Is(err, processor.ErrShadowExists) || !strings.Contains(err.Error(), name) {
		t.Errorf("a second time: %v", err)
	}
	if report := w.shadowed(p, processor.ShadowOptions{Schema: name, Replace: true}); !report.Clean() {
		t.Errorf("replaced: %v", report)
	}
}

// Proves that a pipeline which writes to a table that is no copy is stopped
// before it commits, with the table named, and that nothing is left: by a name
// with its schema, by a trigger, by a deferred trigger.
func TestShadowRefusesWritesOutside(t *testing.T) {
	w, p := newBooks(t)
	name := w.shadowName()
	before := w.live()
	_, err := w.tryShadow(p, processor.Range{}, processor.ShadowOptions{Schema: name, Tables: []string{"booking", "daily", "total"}})
	if err == nil || !strings.Contains(err.Error(), `the pipeline writes to "`+w.db.Schema+`"."audit", which is no copy`) {
		t.Errorf("by a trigger: %v", err)
	}
	qualified := newProcessor(t, w.config(), texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, _ []schema.Message[string]) error {
		_, err := tx.Exec(ctx, "update "+w.db.Schema+".total set n = 0")
		return err
	})))
	_, err = w.tryShadow(qualified, processor.Range{}, processor.ShadowOptions{Schema: name})
	if err == nil || !strings.Contains(err.Error(), `"total"`) {
		t.Errorf("by a qualified name: %v", err)
	}
	if after := w.live(); after != before {
		t.Errorf("the live side has changed:\n%s\nwas\n%s", after, before)
	}
	w.db.Exec(`create constraint trigger late after insert on daily deferrable initially deferred for each row execute function note();
		alter table booking disable trigger noted`)
	before = w.live()
	_, err = w.tryShadow(p, processor.Range{}, processor.ShadowOptions{Schema: name, Tables: []string{"booking", "daily", "total"}})
	if err == nil || !strings.Contains(err.Error(), `"audit"`) {
		t.Errorf("by a deferred trigger: %v", err)
	}
	if after := w.live(); after != before {
		t.Errorf("the live side has changed:\n%s\nwas\n%s", after, before)
	}
	if got := w.scratches(name); got != "" {
		t.Errorf("schemas: %s", got)
	}
}

// Proves that a shadow replay which is stopped leaves nothing.
func TestShadowStopped(t *testing.T) {
	w, p := newBooks(t)
	ctx, cancel := context.WithCancel(t.Context())
	name := w.shadowName()
	_, err := p.Shadow(ctx, processor.Range{Progress: func(done, _ int64) {
		if w.scratches(name) == "" {
			t.Error("the schemas are not there while it runs")
		}
		cancel()
	}}, processor.ShadowOptions{Schema: name, Tables: booked})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it answers %v", err)
	}
	if got := w.scratches(name); got != "" {
		t.Errorf("schemas: %s", got)
	}
}

// Proves that a part of the history can be rebuilt, that the rows of what comes
// before it are extra and said to be so, and that a compacted topic is said to be
// no history.
func TestShadowOfPart(t *testing.T) {
	w := newWorld(t, 1, "cleanup.policy", "compact,delete")
	w.db.Exec(bookkeeping)
	records := numbered("m", 20)
	for i := range records {
		records[i].Key = records[i].Value // without one, a compacted topic takes none
	}
	w.produce(0, records...)
	p := newProcessor(t, w.config(), texts(bookSink))
	toEnd(t, p)
	name := w.shadowName()
	report, err := w.tryShadow(p, processor.Range{From: map[int32]int64{0: 15}}, processor.ShadowOptions{Schema: name, Examples: 2})
	must(t, err)
	d := difference(t, report, "booking")
	if d.Extra != 15 || d.Missing != 0 || d.Different != 0 || len(d.Examples) != 2 {
		t.Errorf("%v with %d examples", d, len(d.Examples))
	}
	if !report.Compacted || len(report.Notes) != 2 || !strings.Contains(report.Notes[0], "15 offsets") || !strings.Contains(report.Notes[1], "compacted") {
		t.Errorf("notes: %q", report.Notes)
	}
}

// Proves that an option about a table or a column that is not there is refused.
func TestShadowOptions(t *testing.T) {
	w, p := newBooks(t)
	name := w.shadowName()
	for want, o := range map[string]processor.ShadowOptions{
		"a name of at most":              {},
		"want table.column":              {Schema: name, Exclude: []string{"amount"}},
		`no table "bookings" is rebuilt`: {Schema: name, Exclude: []string{"bookings.amount"}},
		`no column "amout"`:              {Schema: name, Exclude: []string{"booking.amout"}},
		`Keys: no table "x"`:             {Schema: name, Keys: map[string][]string{"x": {"id"}}},
		"cannot be paired by (kind)":     {Schema: name, Keys: map[string][]string{"booking": {"kind"}}},
		`"nothing": no such table`:       {Schema: name, Tables: []string{"nothing"}},
	} {
		if _, err := w.tryShadow(p, processor.Range{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if got := w.scratches(name); got != "" {
		t.Errorf("schemas: %s", got)
	}
}

// Proves that what a person has skipped is not rebuilt: it is no difference, and
// is told.
func TestShadowSkipped(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(bookkeeping)
	w.produce(0, numbered("m", 20)...)
	toEnd(t, newProcessor(t, w.config(), texts(bookSink)))
	ledger := offsets.New(offsets.Options{Schema: w.db.Schema, Group: w.group, Topic: w.topic, Handler: w.group})
	w.produce(0, schema.Record{Value: []byte("n1")}, schema.Record{Value: []byte("n2")}, schema.Record{Value: []byte("n3")})
	_, err := ledger.Apply(t.Context(), w.db.Pool, []offsets.Change{{Action: offsets.Skip, To: 22}}, offsets.Note{By: "test", Reason: "test"}, time.Second)
	must(t, err)
	toEnd(t, newProcessor(t, w.config(), texts(bookSink)))
	r := w.shadowed(newProcessor(t, w.config(), texts(bookSink)), processor.ShadowOptions{Schema: w.shadowName()})
	if !r.Clean() || r.Skipped != 2 || r.Effects != 21 || !strings.Contains(strings.Join(r.Notes, "\n"), "2 records were skipped by a person") {
		t.Errorf("%v, %d skipped, %q", r, r.Skipped, r.Notes)
	}
}

// Proves that a replay tells what new records would change, in which tables and by
// which keys, that it changes nothing, and that of what was read it has nothing to
// tell.
func TestReplayChanges(t *testing.T) {
	w := newWorld(t, 1)
	w.db.Exec(bookkeeping)
	w.produce(0, numbered("m", 20)...)
	p := newProcessor(t, w.config(), texts(bookSink))
	toEnd(t, p)
	if r := replayed(t, p); len(r.Changes) != 0 {
		t.Errorf("a replay of what was read would change %v", r.Changes)
	}
	w.produce(0, schema.Record{Value: []byte("n1")}, schema.Record{Value: []byte("bad1")}, schema.Record{Value: []byte("m21")}, schema.Record{Value: []byte("m3")})
	before := w.db.Value("select (select sum(hashtext(b::text)) from booking b) || ' ' || (select count(*) from audit)")
	r, err := p.Replay(t.Context(), processor.Range{ToEnd: true})
	must(t, err)
	var changes []string
	for _, c := range r.Changes {
		changes = append(changes, fmt.Sprintf("%s %d %d %d", c.Table.Table, c.Inserted, c.Updated, c.Deleted))
	}
	if got, want := strings.Join(changes, ", "), "audit 2 0 0, booking 2 0 0, daily_low 2 0 0, total 1 1 0"; got != want {
		t.Errorf("would change %s, want %s", got, want)
	}
	if r.Fresh != 3 || r.Faults != 1 || r.Duplicates != 21 || r.Examples[0].Key == "" {
		t.Errorf("%v %+v", r, r.Examples)
	}
	if after := w.db.Value("select (select sum(hashtext(b::text)) from booking b) || ' ' || (select count(*) from audit)"); after != before {
		t.Errorf("the tables were %s and are %s", before, after)
	}
}
