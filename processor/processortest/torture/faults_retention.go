package torture

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// removed is how many records retention takes that nobody has read.
const removed = 30

// retention removes records that were not handled yet. The partition must halt
// where it stands, write nothing more, and go on after the printed command.
func retention(ctx context.Context, w *world, d *dice) (string, bool, error) {
	w.changes.Lock()
	defer w.changes.Unlock()
	for _, worker := range w.workers {
		worker.kill()
	}
	p := int32(d.IntN(w.Partitions))
	next, err := w.backlog(ctx, p), error(nil)
	if next >= 0 {
		err = w.truncate(ctx, p, next+removed)
	}
	for _, worker := range w.workers {
		if startErr := worker.start(); err == nil {
			err = startErr
		}
	}
	if err != nil || next < 0 {
		return fmt.Sprintf("partition %d had no backlog", p), false, err
	}
	h := check.Halt{Partition: p, Code: "retention_passed", At: next}
	if _, err := w.awaitHalt(ctx, &h); err != nil {
		return "", true, err
	}
	w.halted(h)
	err = w.command(ctx, "offsets", "skip", w.workers[0].file, "--partition", fmt.Sprint(p), "--to-offset", fmt.Sprint(next+removed),
		"--reason", "torture: retention has taken them", "--yes")
	return fmt.Sprintf("partition %d, offsets %d to %d", p, next, next+removed), true, err
}

// backlog waits until a partition has a backlog, and returns where it stands, -1
// where none comes.
func (w *world) backlog(ctx context.Context, p int32) (next int64) {
	err := w.until(ctx, patience, "a backlog", func(ctx context.Context) (bool, error) {
		err := w.pool.QueryRow(ctx, `select next_offset from oncestream.consumer_offset where partition = $1`, p).Scan(&next)
		if err != nil {
			return false, nil //nolint:nilerr // the database may be away
		}
		ends, err := w.kafka.ends(ctx)
		return ends[p] > next+2*removed, err
	})
	if err != nil {
		return -1
	}
	return next
}

// truncate reads what is about to be removed into the history, and removes it.
func (w *world) truncate(ctx context.Context, p int32, before int64) error {
	if err := w.readTo(ctx, map[int32]int64{p: before}); err != nil {
		return err
	}
	return w.kafka.admin(func(adm *kadm.Client) error {
		var to kadm.Offsets
		to.Add(kadm.Offset{Topic: topic, Partition: p, At: before, LeaderEpoch: -1})
		answer, err := adm.DeleteRecords(ctx, to)
		if err == nil {
			err = answer.Error()
		}
		return err
	})
}

// awaitHalt waits for a halt, returns where it stands, and looks again a moment
// later: nothing may have been written.
func (w *world) awaitHalt(ctx context.Context, h *check.Halt) (at int64, err error) {
	look := func(ctx context.Context) (state string, err error) {
		err = w.pool.QueryRow(ctx, `select state, coalesce(reason, ''), next_offset from oncestream.consumer_offset where partition = $1`, h.Partition).
			Scan(&state, &h.Seen, &h.Stood)
		return state, err
	}
	err = w.until(ctx, 40*time.Second, fmt.Sprintf("partition %d to halt", h.Partition), func(ctx context.Context) (bool, error) {
		state, err := look(ctx)
		return err == nil && state == "halted", nil
	})
	if at = h.Stood; err == nil {
		err = pause(ctx, time.Second)
	}
	if err == nil {
		err = w.until(ctx, patience, "the database to answer", func(ctx context.Context) (bool, error) {
			_, err := look(ctx)
			return err == nil, nil
		})
	}
	h.Seen, _, _ = strings.Cut(h.Seen, ":")
	return at, err
}

// halted notes a halt.
func (w *world) halted(h check.Halt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Halts = append(w.history.Halts, h)
}

// command runs the program with arguments, again where the database is away.
func (w *world) command(ctx context.Context, args ...string) error {
	var said []byte
	err := w.until(ctx, 30*time.Second, "the command to work", func(ctx context.Context) (bool, error) {
		cmd := exec.CommandContext(ctx, w.Program[0], append(w.Program[1:len(w.Program):len(w.Program)], args...)...)
		cmd.Env = w.Environment
		var err error
		said, err = cmd.CombinedOutput()
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, said)
	}
	return nil
}

// resolve decides again what was decided before the database went back: a restore
// and a failover forget what a person has done, too.
func (w *world) resolve(ctx context.Context) error {
	var p int32
	err := w.pool.QueryRow(ctx, `select partition from oncestream.consumer_offset where state = 'halted' and reason like 'retention_passed%' limit 1`).Scan(&p)
	if err != nil {
		return nil //nolint:nilerr // none is halted, or the database is asked again
	}
	return w.command(ctx, "offsets", "skip", w.workers[0].file, "--partition", fmt.Sprint(p), "--to-offset", "earliest",
		"--reason", "torture: retention has taken them, and the database went back since", "--yes")
}

// settle resolves what a database that went back has halted again, so that the
// next halt is the next fault's.
func (w *world) settle(ctx context.Context) error {
	return w.until(ctx, time.Minute, "no partition to be halted", func(ctx context.Context) (bool, error) {
		if err := w.resolve(ctx); err != nil {
			return false, err
		}
		var n int
		err := w.pool.QueryRow(ctx, `select count(*) from oncestream.consumer_offset where state = 'halted'`).Scan(&n)
		return err == nil && n == 0, nil
	})
}
