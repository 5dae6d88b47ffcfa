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
// meanwhile; another one of the same group may. Its hooks are not called, and of
// the Range only From and To count.
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
