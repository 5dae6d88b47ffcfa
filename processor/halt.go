package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// The codes of a halt. A message with a fault of its own halts its partition,
// where the policy says so, with the [schema.Reason] as the code.
const (
	CodeTopicRecreated  = "topic_recreated"
	CodeOtherCluster    = "other_cluster"
	CodeRetentionPassed = "retention_passed"
	CodeLogTruncated    = "log_truncated"
	CodeBeyondEnd       = "beyond_end"

	CodeSystemic         = "systemic"
	CodeRetriesExhausted = "retries_exhausted"
	CodeDeadLetterRate   = "dead_letter_rate"
)

// Halt tells which partition was stopped on purpose, where and why.
type Halt struct {
	Topic     string
	Partition int32
	// Offset is the first record that was not handled.
	Offset int64
	// Code is a stable name of the reason, see the package comment; Err is the
	// reason in words.
	Code string
	Err  error
	// From and To are the offsets [From, To) that are lost or in doubt, equal
	// where none are.
	From, To int64
	// Remedy is the command that resolves it, for the pipeline file FILE.
	Remedy string
}

// haltError ends a claim because going on could lose or double data.
type haltError struct {
	code string
	err  error
}

func (h *haltError) Error() string { return h.code + ": " + h.err.Error() }
func (h *haltError) Unwrap() error { return h.err }

// doubtfulError is the reason of a halt that puts the offsets [from, to) in
// doubt.
type doubtfulError struct {
	from, to int64
	text     string
}

func (d *doubtfulError) Error() string { return d.text }

// doubt returns the offsets [from, to) that are lost or in doubt; there are none
// where it is a matter of the set-up. Where the ledger's position is of another
// topic, reading on would leave out what lies before it.
func (h *haltError) doubt() (from, to int64) {
	if d, ok := errors.AsType[*doubtfulError](h.err); ok {
		return d.from, d.to
	}
	if r, ok := errors.AsType[offsets.Refusal](h.err); ok {
		return 0, r.Next
	}
	if f, ok := errors.AsType[*schema.Fault](h.err); ok && f.Record != nil && h.code == string(f.Reason) {
		return f.Record.Offset, f.Record.Offset + 1
	}
	return 0, 0
}

// remedy is the command that resolves the halt. What is in doubt is read again,
// since keys keep it from being doubled; only what is gone, or cannot be handled,
// is skipped. A halt for the set-up's sake is opened where it stands.
func (h *Halt) remedy() string {
	action, to := "skip", fmt.Sprint(h.To)
	switch {
	case h.Code == CodeTopicRecreated, h.Code == CodeOtherCluster:
		action, to = "adopt", "earliest"
	case h.Code == CodeLogTruncated, h.Code == CodeBeyondEnd, h.From == h.To:
		action, to = "rewind", fmt.Sprint(h.From)
	}
	return fmt.Sprintf(`oncestream offsets %s FILE --partition %d --to-offset %s --reason "…"`, action, h.Partition, to)
}

// halt stops the partition for a person to decide, and says so.
func (w *worker) halt(work context.Context, h *haltError) {
	w.e.source.shut(w)
	at := offsets.Halted{Partition: w.partition, Epoch: w.claim.Epoch}
	stop := Halt{Topic: w.e.cfg.Kafka.Topic, Partition: w.partition, Offset: w.claim.Next, Code: h.code, Err: h.err}
	refusal, refused := errors.AsType[offsets.Refusal](h.err)
	if refused {
		at.Epoch, stop.Offset = refusal.Epoch, refusal.Next
	}
	if stop.From, stop.To = h.doubt(); stop.From == stop.To {
		stop.From, stop.To = stop.Offset, stop.Offset
	}
	stop.Remedy = stop.remedy()
	w.log.LogAttrs(work, slog.LevelError, "the partition is halted; the others go on",
		slog.String("code", stop.Code), slog.Int64("offset", stop.Offset), slog.String("doubt", fmt.Sprintf("[%d, %d)", stop.From, stop.To)),
		slog.Any("reason", stop.Err), slog.String("remedy", stop.Remedy))
	at.Noted = w.note(work, stop, at.Epoch, refusal, refused)
	w.pulse.stop(stop)
	w.e.halted(standstill{stop, at})
}

// note writes the halt down in the ledger, where status finds it, and reports
// whether it is there.
func (w *worker) note(work context.Context, stop Halt, epoch int64, refusal offsets.Refusal, refused bool) (noted bool) {
	ctx, cancel := context.WithTimeout(work, w.e.cfg.Postgres.TransactionTimeout)
	defer cancel()
	reason := stop.Code + ": " + stop.Err.Error()
	var err error
	switch {
	case refused: // the reason ends with the remedy
		noted, err = w.e.ledger.HaltRefused(ctx, w.e.pool, refusal, reason)
	case w.held:
		c := w.claim
		c.Epoch = epoch
		err = w.e.ledger.Halt(ctx, w.e.pool, c, reason+"; to resolve it: "+stop.Remedy)
		noted = err == nil
	}
	if err != nil {
		w.log.LogAttrs(work, slog.LevelWarn, "the halt could not be noted in the ledger", slog.Any("reason", err))
	}
	return noted
}
