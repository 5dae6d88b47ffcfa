package processor

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// chases is how often the shadow tries to catch up with a live processor before
// the live rows are copied as they are at one moment.
const chases = 2

// compare compares the shadow with the live tables as of the same offsets.
//
// A snapshot holds the stored offsets and the live rows of one moment. Where the
// processor has moved on since the shadow was rebuilt, what it has read is
// rebuilt too, and another snapshot is taken. Under load that never ends: the
// snapshot in which the shadow has caught up shows a processor that has moved
// again. So at last the live rows are copied out of a snapshot, and the shadow
// catches up with that.
func (s *shadow) compare(ctx context.Context) error {
	for try := 0; ; try++ {
		tx, err := s.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return err
		}
		done, behind, err := s.compareIn(ctx, tx, try == chases)
		if err == nil {
			err = tx.Commit(ctx)
		} else {
			_ = tx.Rollback(context.WithoutCancel(ctx)) // only the first error says something
		}
		if err != nil || done {
			return err
		}
		if err := s.replay(ctx, behind); err != nil {
			return err
		}
		if try == chases {
			return s.compareFrozen(ctx)
		}
	}
}

// compareIn compares within a snapshot, or says what is to be rebuilt before. As
// a last resort it copies the live rows.
func (s *shadow) compareIn(ctx context.Context, tx pgx.Tx, freeze bool) (done bool, behind []RangeReport, err error) {
	progress, err := s.ledger.Progress(ctx, tx)
	if err != nil {
		return false, nil, err
	}
	if behind, err = s.behind(progress); err != nil {
		return false, nil, err
	}
	if len(behind) == 0 {
		if err := s.note(ctx, tx, progress); err != nil {
			return false, nil, err
		}
		return true, nil, s.diffAll(ctx, tx, "")
	}
	if freeze {
		if err := s.note(ctx, tx, progress); err != nil {
			return false, nil, err
		}
		err = tables.Freeze(ctx, tx, s.opts.Schema+liveSuffix, s.rebuilt())
	}
	return false, behind, err
}

// compareFrozen compares with the live rows that were copied.
func (s *shadow) compareFrozen(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error { return s.diffAll(ctx, tx, s.opts.Schema+liveSuffix) })
	if err != nil {
		return err
	}
	return tables.DropSchema(ctx, s.conn, s.opts.Schema+liveSuffix)
}

// behind returns what the live processor has passed and the shadow has not.
func (s *shadow) behind(progress []offsets.Progress) ([]RangeReport, error) {
	spans, err := s.bounds.spans(s.p.cfg.Kafka.Topic, progress)
	if err != nil {
		return nil, err
	}
	var behind []RangeReport
	for _, span := range spans {
		if w := s.workers[span.Partition]; w != nil {
			span.From = max(span.From, w.claim.Next)
		}
		if span.From < span.To {
			s.report.Advanced += span.To - span.From
			behind = append(behind, span)
		}
	}
	return behind, nil
}

// rebuilt lists the live tables that were rebuilt.
func (s *shadow) rebuilt() []tables.Name {
	var live []tables.Name
	for _, t := range s.copied.Tables {
		if !t.Partition && !t.WithRows {
			live = append(live, t.From)
		}
	}
	return live
}

// diffAll compares all tables: with the live ones, or with those of the same
// names in the schema frozen.
func (s *shadow) diffAll(ctx context.Context, tx pgx.Tx, frozen string) error {
	if err := s.account(ctx); err != nil {
		return err
	}
	for _, live := range s.rebuilt() {
		right := live
		if frozen != "" {
			right.Schema = frozen
		}
		d, err := s.diff(ctx, tx, live, right)
		if err != nil {
			return err
		}
		d.Right = live
		s.report.Tables = append(s.report.Tables, d)
	}
	return nil
}

// diff compares one table by the key that makes the least of the difference.
func (s *shadow) diff(ctx context.Context, tx pgx.Tx, live, right tables.Name) (best TableDifference, err error) {
	keys, err := tables.KeysOf(ctx, tx, live)
	if err != nil {
		return best, err
	}
	o := tables.DiffOptions{Limit: s.opts.Examples, Exclude: s.excluded(live.Table)}
	if !s.opts.Strict {
		for _, v := range keys.Volatile {
			o.Lenient = append(o.Lenient, v.Name)
		}
	}
	for i, key := range s.candidates(live.Table, keys, o.Lenient) {
		o.Key, o.Unpaired = key, len(key) == 0
		d, err := tables.Diff(ctx, tx, tables.Name{Schema: s.opts.Schema, Table: live.Table}, right, o)
		if err != nil {
			return best, err
		}
		if i == 0 || weight(d) < weight(best.Difference) {
			best.Difference = d
		}
		if d.None() {
			break
		}
	}
	for _, v := range keys.Volatile {
		differs := slices.ContainsFunc(best.Columns, func(c tables.ColumnDifference) bool { return c.Name == v.Name })
		if differs || len(best.Key) == 0 && slices.Contains(o.Lenient, v.Name) {
			best.Volatile = append(best.Volatile, v)
		}
	}
	return best, nil
}

func weight(d tables.Difference) int64 { return d.Missing + d.Extra + d.Different }

// candidates are the keys by which rows may be paired, the empty one for none.
func (s *shadow) candidates(table string, keys tables.Keys, lenient []string) [][]string {
	if key, ok := s.opts.Keys[table]; ok {
		return [][]string{key}
	}
	drawn := func(key []string) bool {
		return slices.ContainsFunc(key, func(c string) bool { return slices.Contains(lenient, c) })
	}
	if len(keys.Primary) > 0 && !drawn(keys.Primary) {
		return [][]string{keys.Primary}
	}
	var all [][]string
	if len(keys.Primary) > 0 {
		all = append(all, keys.Primary)
	}
	for _, key := range keys.Unique {
		if !drawn(key) {
			all = append(all, key)
			break
		}
	}
	return append(all, nil)
}

func (s *shadow) excluded(table string) []string {
	var columns []string
	for _, e := range s.opts.Exclude {
		if t, column, _ := strings.Cut(e, "."); t == table {
			columns = append(columns, column)
		}
	}
	return columns
}
