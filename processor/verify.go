package processor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// VerifyOptions say how thorough a verification is, and what it leaves out.
type VerifyOptions struct {
	// Records is how many offsets of the topic are verified where the Range does
	// not say it: the last ones, shared among the partitions. Defaults to 10,000.
	Records int64
	// MaxBytes bounds the records, which are kept in memory. A range that holds
	// more is refused. Defaults to 256 MiB.
	MaxBytes int
	// Sample is the share of the keys that are verified, above 0 and up to 1. It
	// takes whole keys: of a key that it has, no record is missing.
	// Defaults to 1.
	Sample float64
	// Tables are those that the pipeline writes to, as "table" or "schema.table":
	// they are copied, without their rows. Small tables that their foreign keys
	// refer to are copied with their rows. Defaults to all tables of the search
	// path but the ledger's.
	Tables []string
	// WithRows are copied with their rows, because effects depend on what is in
	// them. Defaults to none.
	WithRows []string
	// Exclude are columns, as "table.column", that may differ: they are not
	// compared, and listed in the verdict. Defaults to none.
	Exclude []string
	// OncePerPosition says that the producer never sends a message twice, so that
	// nothing is claimed of a message that comes at another position.
	// Defaults to false.
	OncePerPosition bool
	// Order also asks for the same effects when records of different record keys
	// come in another order. Defaults to false.
	Order bool
	// Seed decides what is drawn by lot. Defaults to 1.
	Seed uint64
	// Progress, if set, is told now and then how many records are done of all
	// that will be, counting each time that a record is handled.
	Progress func(done, total int64)
}

const (
	defaultVerifyRecords = 10_000
	defaultVerifyBytes   = 256 << 20
)

func (o VerifyOptions) withDefaults() (VerifyOptions, error) {
	fill(&o.Records, defaultVerifyRecords)
	fill(&o.MaxBytes, defaultVerifyBytes)
	fill(&o.Sample, 1)
	fill(&o.Seed, 1)
	if o.Records < 0 || o.MaxBytes < 0 || o.Sample < 0 || o.Sample > 1 {
		return o, fmt.Errorf("processor: verify: Records and MaxBytes must be positive, Sample between 0 and 1 (got %d, %d, %g)", o.Records, o.MaxBytes, o.Sample)
	}
	for _, e := range o.Exclude {
		if table, column, ok := strings.Cut(e, "."); !ok || table == "" || column == "" || strings.Contains(column, ".") {
			return o, fmt.Errorf("processor: verify: Exclude: want table.column, without the table's schema (got %q)", e)
		}
	}
	return o, nil
}

func (o VerifyOptions) copies() tables.CopyOptions {
	return tables.CopyOptions{Tables: tableNames(o.Tables), Rows: tableNames(o.WithRows)}
}

func tableNames(texts []string) []tables.Name {
	var names []tables.Name
	for _, text := range texts {
		n := tables.Name{Table: text}
		if s, t, ok := strings.Cut(text, "."); ok {
			n = tables.Name{Schema: s, Table: t}
		}
		names = append(names, n)
	}
	return names
}

// verification is one run of Verify.
type verification struct {
	p       *Processor
	opts    VerifyOptions
	in      *reader
	all     []stretch
	shop    *workshop
	verdict *Verdict

	reference *scratch
	aside     map[offsets.At]bool // set aside in the reference
	hidden    []hiddenColumn
	// strayed are the tables in which runs of the same records differ beyond
	// that, strays says how.
	strayed, strays []string
	natural         map[string]bool // which tables are idempotent by nature
	done            int64
	total           int64
	// againUnder is added to the handler of the proof "again". Only a test that
	// breaks the guard of the keys sets it.
	againUnder string
}

// Verify proves, by trying it, that the pipeline is idempotent and survives a
// crash at any step: it reads a range of the topic into memory and runs it
// through the pipeline again and again, in scratch schemas with copies of the
// tables, which it drops at the end. It joins no group, reads nothing of the live
// ledger, and refuses a transaction that would write anywhere else.
//
// Each proof stands for itself, see [ProofName]. What comes out is a [Verdict]; an
// error says that none could be found.
//
// The sink is prepared anew for each run, on the copies. It finds them by their
// bare names: a sink that names a table with its schema, or connects to the
// database by itself, is not isolated; the first is found and refused, the second
// may be seen as state outside of the transaction. The Processor must not run
// meanwhile; another one of the same group may.
func (p *Processor) Verify(ctx context.Context, r Range, opts VerifyOptions) (Verdict, error) {
	v := &verification{p: p, opts: opts}
	return v.verify(ctx, r)
}

func (v *verification) verify(ctx context.Context, r Range) (_ Verdict, err error) {
	began := time.Now()
	if v.opts, err = v.opts.withDefaults(); err != nil {
		return Verdict{}, err
	}
	v.verdict = newVerdict(v.p, v.opts, began)
	if v.in, err = v.p.readRange(ctx, r, &v.opts); err != nil {
		return Verdict{}, err
	}
	v.all = v.in.stretches()
	if v.shop, err = v.p.openWorkshop(ctx, v.opts.copies()); err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, v.shop.close(ctx)) }()
	if err := v.run(ctx); err != nil {
		return *v.verdict, err
	}
	v.verdict.conclude(time.Since(began))
	return *v.verdict, nil
}

// run does the proofs. Those that tell what the effects depend on come first, so
// that the others leave out what was named already.
func (v *verification) run(ctx context.Context) error {
	v.describe()
	if v.verdict.Records == 0 {
		return fmt.Errorf("processor: verify %s: there is no record in the range, so that nothing can be proven", v.in.topic.Name)
	}
	version, err := tables.ServerVersion(ctx, v.shop.conn)
	if err != nil {
		return err
	}
	v.verdict.Postgres = version
	v.total = v.verdict.Records * v.laps()
	for _, proof := range []func(context.Context) error{v.refer, v.again, v.otherInput, v.resume, v.order} {
		if err := proof(ctx); err != nil {
			return err
		}
	}
	return v.tables(ctx)
}

// laps is how often the range is run.
func (v *verification) laps() int64 {
	laps := int64(1 + 3 + 2 + len(v.cuttings()))
	if v.opts.OncePerPosition {
		laps--
	}
	if v.opts.Order {
		laps++
	}
	return laps
}

// describe writes down what is verified.
func (v *verification) describe() {
	d := v.verdict
	d.TopicID, d.ClusterID = fmt.Sprintf("%x", v.in.topic.ID), v.in.topic.ClusterID
	d.Read = v.in.seen
	for i := range v.all {
		s := &v.all[i]
		n := int64(len(s.records))
		d.Partitions = append(d.Partitions, VerifiedRange{Partition: s.partition, From: s.from, To: s.to, Records: n})
		d.Records += n
	}
}

// passed tells of records that are done.
func (v *verification) passed(records int) {
	v.done += int64(records)
	if v.opts.Progress != nil && v.total > 0 {
		v.opts.Progress(min(v.done, v.total), v.total)
	}
}

// refer makes the run that all others are compared with, as the pipeline is
// configured.
func (v *verification) refer(ctx context.Context) (err error) {
	if v.reference, err = v.shop.make(ctx, "reference", false); err != nil {
		return err
	}
	if err := v.checkExcluded(ctx); err != nil {
		return err
	}
	for _, left := range v.reference.leftOut {
		v.verdict.LeftOut = append(v.verdict.LeftOut, left.String())
	}
	slices.Sort(v.verdict.LeftOut)
	l, err := v.openLap(ctx, v.reference, lapOptions{log: v.p.cfg.Logger})
	if err != nil {
		return err
	}
	defer l.close()
	passed, err := l.run(ctx, v.all)
	if err != nil {
		return err
	}
	v.verdict.Effects, v.verdict.Duplicates, v.verdict.DeadLetters = passed.applied, passed.duplicates, passed.deadLetters
	if passed.applied == 0 {
		return fmt.Errorf("processor: verify %s: none of %d records has an effect (%d dead letters), so that nothing can be proven: "+
			"where effects depend on rows that are there, have their tables copied with them (--with-rows)", l.topic.Name, passed.records, passed.deadLetters)
	}
	v.p.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "verify: the reference is done", slog.Int64("effects", passed.applied))
	v.aside, err = l.ledger.SetAsideAt(ctx, l.pool)
	return err
}

// checkExcluded refuses a column that is not there: the name is misspelt.
func (v *verification) checkExcluded(ctx context.Context) error {
	for _, e := range v.opts.Exclude {
		table, column, _ := strings.Cut(e, ".")
		i := slices.IndexFunc(v.reference.tables, func(n tables.Name) bool { return n.Table == table })
		if i < 0 {
			return fmt.Errorf("processor: verify: Exclude: no table %q is verified (--exclude %s)", table, e)
		}
		columns, err := tables.Columns(ctx, v.shop.conn, v.reference.tables[i])
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(columns, func(c tables.Column) bool { return c.Name == column }) {
			return fmt.Errorf("processor: verify: Exclude: table %q has no column %q (--exclude %s)", table, column, e)
		}
	}
	slices.SortFunc(v.verdict.Excluded, cmp.Compare[string])
	return nil
}
