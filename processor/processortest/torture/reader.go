package torture

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// recent is how many rows the reader looks at for doubles.
const recent = 20_000

const sqlSample = `
select (select coalesce(sum(balance), 0)::text from account),
  (select count(*) from (
    select id from appended where at > (select coalesce(max(at), 0) - $1 from appended) group by id having count(*) > 1) as doubles),
  (select coalesce(sum(records), 0)::bigint from oncestream.consumer_offset),
  (select count(*) from oncestream.dead_letter d join oncestream.consumer_offset o using (consumer_group, topic, partition) where d.record_offset >= o.next_offset)`

// watch looks at the tables all the time, each time in one snapshot. What it
// cannot see, because the database is away, it does not see.
func (w *world) watch(ctx context.Context) {
	w.producer.every(ctx, time.Second, func() {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		s := check.Sample{At: time.Now()}
		err := pgx.BeginTxFunc(attempt, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			return tx.QueryRow(attempt, sqlSample, recent).Scan(&s.Sum, &s.Doubles, &s.Handled, &s.Early)
		})
		if err != nil {
			return
		}
		if s.Lag, err = w.lag(attempt); err != nil {
			s.Lag = -1
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.Samples = append(w.history.Samples, s)
	})
}
