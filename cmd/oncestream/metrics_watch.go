package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
)

// watch looks now and then at what the engine's hooks do not tell: the lag, the
// drift of Kafka's offset, the retention, the oldest transaction. It shows them
// on the board and warns.
type watch struct {
	config  *config
	log     *slog.Logger
	metrics *metrics
	lookout *processor.Lookout
	warned  warnings

	mu   sync.Mutex
	last lookText
}

// lookText is a look as /status shows it.
type lookText struct {
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"`
	*status
}

// start starts looking, at the first claim and from then on; the function it
// returns stops that and waits for it.
func (w *watch) start(ctx context.Context) (stop func(), err error) {
	if w.lookout, err = processor.OpenLookout(w.config.engine.Kafka); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer w.lookout.Close()
		w.loop(ctx)
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

func (w *watch) loop(ctx context.Context) {
	ticker := time.NewTicker(w.config.watch.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.metrics.board.claimed:
		}
		w.look(ctx)
	}
}

// lookTimeout is how long one look may take.
const lookTimeout = 20 * time.Second

func (w *watch) look(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s, err := observe(attempt, w.config, w.lookout, w.metrics.board.holding())
	if ctx.Err() != nil {
		return
	}
	text := lookText{At: time.Now(), status: &s}
	if err != nil {
		text.Error, text.status = err.Error(), nil
		w.metrics.add("looks_failed_total", 1)
		w.metrics.board.show(nil, nil)
		w.log.LogAttrs(ctx, slog.LevelDebug, "the metrics cannot be brought up to date", slog.Any("reason", err))
	} else {
		w.metrics.board.show(s.Partitions, w.age(&s, text.At))
		w.warn(ctx, &s, text.At)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = text
}

// latest returns the last look, whose time is zero where there was none.
func (w *watch) latest() lookText {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// age is that of the oldest transaction. Where our role may not see since when it
// is open, it is as old as we have seen it, which is less than it is.
func (w *watch) age(s *status, now time.Time) *time.Duration {
	t := s.transaction
	if t == nil {
		w.warned.hidden.since = time.Time{}
		return nil
	}
	if t.Kind != "" && t.Started.IsZero() {
		t.Age = w.warned.hidden.age(*t, now)
		s.Oldest = describe(*t, w.config.watch.transaction)
	}
	return &t.Age
}

// warn says what is about to go wrong.
func (w *watch) warn(ctx context.Context, s *status, now time.Time) {
	for _, p := range s.Partitions {
		f := p.forecast
		if f == nil || !f.Near(w.config.watch.retention) {
			w.warned.over(retentionOf(p.Partition))
			continue
		}
		if !w.warned.again(retentionOf(p.Partition), now) {
			continue
		}
		if f.Outlook == processor.OutlookLost {
			w.log.LogAttrs(ctx, slog.LevelWarn, "retention has removed records that were not read",
				slog.String("topic", s.Topic), slog.Int("partition", int(p.Partition)), slog.Int64("from", *p.Next), slog.Int64("to", *p.Next+f.Lost))
			continue
		}
		w.log.LogAttrs(ctx, slog.LevelWarn, "retention will remove records before they are read; raise the topic's retention, or add to what reads it",
			slog.String("topic", s.Topic), slog.Int("partition", int(p.Partition)), slog.Int64("offset", *p.Next),
			slog.Duration("in", f.Remaining.Truncate(time.Second)), slog.Duration("retention", f.Retention), slog.Int64("lag", p.Lag))
	}
	switch {
	case s.Oldest == nil:
		w.warned.over(vacuum)
	case w.warned.again(vacuum, now):
		t := s.Oldest
		w.log.LogAttrs(ctx, slog.LevelWarn, "an old transaction keeps the vacuum from dead rows; each batch adds one to the ledger's positions, and batches become slow: end it",
			slog.Int("pid", int(t.PID)), slog.String("application", t.Application), slog.String("transaction", t.text),
			slog.Duration("age", time.Duration(t.AgeSeconds*float64(time.Second)).Truncate(time.Second)), slog.Int64("dead_rows", t.DeadRows))
	}
}

// warnings keeps a warning from filling the log: it is given once, and again
// after a while, or after it was over.
type warnings struct {
	given  map[string]time.Time
	hidden seenTransaction
}

// warnEvery is after how long a warning is repeated.
const warnEvery = 10 * time.Minute

// The subjects of warnings.
const vacuum = "vacuum"

func retentionOf(partition int32) string { return "retention " + partitionLabel(partition) }

// again reports whether it is time to give the warning, and notes that it was.
func (w *warnings) again(subject string, now time.Time) bool {
	if last, given := w.given[subject]; given && now.Sub(last) < warnEvery {
		return false
	}
	if w.given == nil {
		w.given = map[string]time.Time{}
	}
	w.given[subject] = now
	return true
}

// over notes that there is nothing to warn of any more.
func (w *warnings) over(subject string) { delete(w.given, subject) }

// seenTransaction is a transaction of which we do not see since when it is open.
type seenTransaction struct {
	kind, name string
	pid        int32
	since      time.Time
}

// age returns for how long the transaction has been the oldest.
func (s *seenTransaction) age(t offsets.Transaction, now time.Time) time.Duration {
	if s.since.IsZero() || s.kind != t.Kind || s.name != t.Name || s.pid != t.PID {
		*s = seenTransaction{t.Kind, t.Name, t.PID, now}
	}
	return now.Sub(s.since)
}
