package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// collect reads all that the run has left: the log, the tables, the workers' logs.
func (w *world) collect(ctx context.Context) error {
	if err := w.readLog(ctx); err != nil {
		return fmt.Errorf("torture: read the topic: %w", err)
	}
	err := pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return w.readTables(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("torture: read the tables: %w", err)
	}
	for _, worker := range w.workers {
		commits, err := worker.outcomes()
		if err != nil {
			return err
		}
		w.history.Commits = append(w.history.Commits, commits...)
		w.history.Exits = append(w.history.Exits, worker.ends...)
	}
	return nil
}

// readLog reads the committed records of the topic that the history does not have
// yet, to its end.
func (w *world) readLog(ctx context.Context) error {
	ends, err := w.kafka.ends(ctx)
	if err != nil {
		return err
	}
	return w.readTo(ctx, ends)
}

// readTo reads on up to the offsets.
func (w *world) readTo(ctx context.Context, ends map[int32]int64) error {
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		if end > w.read[p] {
			from[p] = kgo.NewOffset().At(w.read[p])
		}
	}
	if len(from) == 0 {
		return nil
	}
	client, err := w.kafka.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for len(from) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) { w.take(r, ends[r.Partition]) })
		for p := range from {
			if w.read[p] >= ends[p] {
				delete(from, p)
			}
		}
	}
	return nil
}

// take puts a record that lies before the end into the history.
func (w *world) take(r *kgo.Record, end int64) {
	w.read[r.Partition] = min(r.Offset+1, end)
	if r.Attrs.IsControl() || r.Offset >= end {
		return
	}
	w.producer.mu.Lock()
	record := parse(r.Value, w.producer.poison)
	w.producer.mu.Unlock()
	record.Partition, record.Offset, record.Topic, record.Log = r.Partition, r.Offset, len(w.topics)-1, w.logs[r.Partition]
	w.history.Records = append(w.history.Records, record)
}

// readTables reads the tables into the history.
func (w *world) readTables(ctx context.Context, tx pgx.Tx) error {
	h := &w.history
	return errors.Join(
		each(ctx, tx, `select id::text, entity, seq, partition, record_offset, at, xid::text from appended order by at`, &h.Appended,
			func(a *check.Append) []any {
				return []any{&a.ID, &a.Entity, &a.Seq, &a.Partition, &a.Offset, &a.At, &a.Tx}
			}),
		each(ctx, tx, `select account, trim(currency), balance::text from account`, &h.Balances,
			func(b *check.Balance) []any { return []any{&b.Account, &b.Currency, &b.Amount} }),
		each(ctx, tx, `select entity, n, total::text from counter`, &h.Counters,
			func(c *check.Counter) []any { return []any{&c.Entity, &c.N, &c.Total} }),
		each(ctx, tx, `select partition, record_offset, reason, array_position($1::uuid[], topic_id) - 1 from oncestream.dead_letter`, &h.DeadLetters,
			func(d *check.DeadLetter) []any { return []any{&d.Partition, &d.Offset, &d.Reason, &d.Topic} }, w.topics),
		each(ctx, tx, `select partition, first_offset, next_offset, epoch, records, duplicates_producer, duplicates_redelivery, dead_letters,
				state, coalesce(reason, '') from oncestream.consumer_offset order by partition`, &h.Positions,
			func(p *check.Position) []any {
				return []any{&p.Partition, &p.First, &p.Next, &p.Epoch, &p.Records, &p.Producer, &p.Redelivery, &p.DeadLetters, &p.State, &p.Reason}
			}),
		each(ctx, tx, `select partition, from_offset, to_offset, epoch, coalesce(owner, ''), xid::text from journal where pass order by id`, &h.Passes,
			func(p *check.Pass) []any { return []any{&p.Partition, &p.From, &p.To, &p.Epoch, &p.Owner, &p.Tx} }),
		each(ctx, tx, `select partition, old_offset, new_offset, epoch, action from oncestream.offset_change order by id`, &h.Changes,
			func(c *check.Change) []any { return []any{&c.Partition, &c.From, &c.To, &c.Epoch, &c.Action} }),
	)
}

// each reads the rows of a query; into says where the columns of a row go.
func each[E any](ctx context.Context, tx pgx.Tx, sql string, all *[]E, into func(*E) []any, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e E, err error) {
		err = row.Scan(into(&e)...)
		return e, err
	})
	*all = append(*all, found...)
	return err
}

// logLine is what is looked for in a worker's log.
type logLine struct {
	Time      time.Time `json:"time"`
	Message   string    `json:"msg"`
	Committed *bool     `json:"committed"`
}

// outcomes finds, for each COMMIT that the proxy has struck, what the worker has
// found out about it: the first line behind it that says so and is no other's.
func (w *worker) outcomes() ([]check.Commit, error) {
	found := map[int][]logLine{}
	for life := 1; life <= w.lives; life++ {
		lines, err := readLog(w.log(life))
		if err != nil {
			return nil, err
		}
		found[life] = lines
	}
	commits := append([]check.Commit(nil), w.commits...)
	for i := range commits {
		c := &commits[i]
		lines := found[c.Life]
		for n, line := range lines {
			if line.Time.Before(c.At.Add(-time.Second)) {
				continue
			}
			c.Outcome = outcome(line)
			found[c.Life] = append(lines[:n:n], lines[n+1:]...)
			break
		}
		for _, e := range w.ends {
			c.Ended = c.Ended || e.Life == c.Life
		}
	}
	return commits, nil
}

func outcome(line logLine) string {
	switch {
	case line.Committed == nil:
		return "fenced"
	case *line.Committed:
		return "committed"
	}
	return "aborted"
}

// readLog returns the lines of a log that tell of a COMMIT's fate.
func readLog(path string) (lines []logLine, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line logLine
		if json.Unmarshal(scanner.Bytes(), &line) != nil {
			continue // a line that was cut by a kill
		}
		if line.Committed != nil || line.Message == fencedLine {
			lines = append(lines, line)
		}
	}
	return lines, scanner.Err()
}

// fencedLine is what the engine says when a claim is another's.
const fencedLine = "lost ownership of the partition; dropping what was read and claiming again while the group lists it"
