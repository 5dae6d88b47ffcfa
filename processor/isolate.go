package processor

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
)

// A batch is tried without savepoints first. Where a message has a fault of its
// own and the error names it, the batch is tried again without it. Where the
// database refuses the batch and does not say because of which message, the
// batch is tried again in isolation: after the advance and the keys, the effects
// are written in pieces, each under a savepoint, and a piece that is refused in
// halves, until the message stands alone. Nothing is committed in between, and
// the keys are admitted once.
//
// To find one message by halves takes a dozen tries. A sink that can suspect
// messages, see [Suspecter], is asked first: each suspect is a piece of its own,
// and so is a message that was named in the try before.
//
// Bad messages come in runs, so the batches behind one that needed isolation
// begin with it, in pieces that are likely to be good, until a batch is good as
// a whole.

// sifting is what isolation has taught of a partition.
type sifting struct {
	// begin says that the next batch begins in isolation, piece how many
	// messages its pieces have at most.
	begin bool
	piece int
}

// The bounds of a piece: below the least one, savepoints cost more than they
// save; above the largest, a refused piece costs too much.
const (
	firstPiece   = 128
	leastPiece   = 16
	largestPiece = 1024
)

// maxSuspects bounds the suspects that are believed, as a share of the batch of
// one in so many. A sink that suspects more has misunderstood: what it misses is
// written by another sink of the same batch, for one.
const maxSuspects = 16

// learn takes the pieces about half as long as the runs between the messages
// that had to be searched for.
func (s *sifting) learn(messages, rejected, searched int) {
	s.begin = rejected > 0
	s.piece = min(max(messages/(2*(searched+1)), leastPiece), largestPiece)
}

const (
	mark = "savepoint oncestream"
	back = "rollback to savepoint oncestream"
	// Constraints that are deferred are checked before a piece is kept: at COMMIT
	// they would name no message. They are deferred again for the next piece, in
	// which several sinks may need that.
	keep = "set constraints all immediate; set constraints all deferred; release savepoint oncestream; " + mark
)

// isolating writes the effects of the messages and sets aside those at fault.
func (a *attempt) isolating(ctx context.Context, tx pgx.Tx, numbers []int) error {
	if _, err := tx.Exec(ctx, mark); err != nil {
		return err
	}
	a.isolated = len(numbers)
	suspects, size, err := a.suspect(ctx, tx, numbers)
	if err != nil {
		return err
	}
	from := 0
	for _, at := range suspects {
		if err := a.sieve(ctx, tx, numbers[from:at], size); err != nil {
			return err
		}
		from = at + 1
		found := a.searched
		if err := a.sift(ctx, tx, numbers[at:from]); err != nil {
			return err
		}
		a.searched = found // a suspect need not be searched for
	}
	return a.sieve(ctx, tx, numbers[from:], size)
}

// sieve sifts the messages in pieces of the size.
func (a *attempt) sieve(ctx context.Context, tx pgx.Tx, numbers []int, size int) error {
	for piece := range slices.Chunk(numbers, size) {
		if err := a.sift(ctx, tx, piece); err != nil {
			return err
		}
	}
	return nil
}

// suspect asks the sink which of the messages are likely to be refused, and
// says how large the pieces between them may be. Nothing depends on the answer
// but the number of tries, so a question that the database refuses is dropped.
func (a *attempt) suspect(ctx context.Context, tx pgx.Tx, numbers []int) (suspects []int, size int, err error) {
	size = a.sifting.piece
	suspects, ok, err := a.messages.suspects(ctx, ownedTx{tx}, a.pick(numbers))
	switch {
	case err != nil:
		a.log.LogAttrs(ctx, slog.LevelDebug, "the sink could not say whom it suspects; searching by halves", slog.Any("reason", err))
		suspects = nil
		_, err = tx.Exec(ctx, back)
	case ok && len(suspects) <= len(numbers)/maxSuspects:
		size = cmp.Or(size, largestPiece)
	default:
		suspects = nil
	}
	return a.withNamed(suspects, numbers), cmp.Or(size, firstPiece), err
}

// withNamed adds the messages that the try before has named to the suspects.
func (a *attempt) withNamed(suspects, numbers []int) []int {
	for at, n := range numbers {
		if blames(a.named, a.records[n]) {
			suspects = append(suspects, at)
		}
	}
	slices.Sort(suspects)
	return slices.Compact(suspects)
}

// sift writes the effects of a piece, of its good messages at least.
func (a *attempt) sift(ctx context.Context, tx pgx.Tx, piece []int) error {
	piece = a.parkBehind(piece)
	if len(piece) == 0 {
		return nil
	}
	err := a.try(ctx, tx, piece)
	if err == nil || classify(err) != ownFault {
		return err
	}
	if _, err := tx.Exec(ctx, back); err != nil {
		return err
	}
	faults := faultsOf(err)
	own := slices.DeleteFunc(slices.Clone(faults), dependent)
	rest := slices.DeleteFunc(slices.Clone(piece), func(n int) bool { return blames(own, a.records[n]) })
	first := slices.IndexFunc(piece, func(n int) bool { return blames(faults, a.records[n]) })
	switch {
	case len(rest) < len(piece): // whatever the others are
		if err := a.reject(own); err != nil {
			return err
		}
		return a.sift(ctx, tx, rest)
	case len(piece) == 1 && first == 0:
		return a.reject(faults)
	case len(piece) == 1:
		a.searched++
		return a.reject([]*schema.Fault{faultOf(err, a.records[piece[0]])})
	case first >= 0:
		return a.inOrder(ctx, tx, piece[:first], piece[first:first+1], piece[first+1:])
	}
	return a.halve(ctx, tx, piece)
}

// inOrder sifts pieces one after the other: a message that is at fault because of
// what stands before it is judged when that is known to stay.
func (a *attempt) inOrder(ctx context.Context, tx pgx.Tx, pieces ...[]int) error {
	for _, piece := range pieces {
		if err := a.sift(ctx, tx, piece); err != nil {
			return err
		}
	}
	return nil
}

// dependent reports whether a fault may not be the message's own after all: a
// balance that does not suffice, a row that is met, a handler's refusal can be
// the doing of a message before it that is about to be set aside itself. What is
// wrong with a value is wrong whatever stands before it.
func dependent(f *schema.Fault) bool {
	if _, server := errors.AsType[*pgconn.PgError](f.Err); server || f.Dependent {
		return true
	}
	switch f.Reason {
	case schema.ReasonDecode, schema.ReasonKeyMissing, schema.ReasonKeyInvalid, schema.ReasonTombstone,
		schema.ReasonValueType, schema.ReasonValueRange, schema.ReasonNotNull, schema.ReasonTooLarge:
		return false
	default:
		return true
	}
}

// halve sifts the halves of a piece that was refused. Where the first one is
// good, the second one is refused for certain, and is halved without a try.
func (a *attempt) halve(ctx context.Context, tx pgx.Tx, piece []int) error {
	half := len(piece) / 2
	rejected := len(a.aside)
	if err := a.sift(ctx, tx, piece[:half]); err != nil {
		return err
	}
	rest := a.parkBehind(piece[half:])
	if len(a.aside) > rejected || len(rest) < 2 {
		return a.sift(ctx, tx, rest)
	}
	return a.halve(ctx, tx, rest)
}

// try writes the effects of a piece and keeps them.
func (a *attempt) try(ctx context.Context, tx pgx.Tx, piece []int) error {
	outcomes, err := a.messages.apply(ctx, ownedTx{tx}, a.pick(piece))
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, keep); err != nil {
		return err
	}
	a.report(piece, outcomes)
	return nil
}

// parkBehind sets aside the messages of a piece that stand behind one of their
// record key which was rejected before, and returns the others.
func (a *attempt) parkBehind(piece []int) []int {
	if len(a.behind) == 0 {
		return piece
	}
	rest := make([]int, 0, len(piece))
	for _, n := range piece {
		r := a.records[n]
		if from, ok := a.behind[string(r.Key)]; ok && r.Key != nil && r.Offset > from {
			a.setAside(n, schema.Faultf(r, schema.ReasonParked, "waits behind a dead letter of its record key"))
		} else {
			rest = append(rest, n)
		}
	}
	return rest
}

// reject sets messages aside within the transaction. Where the partition is to
// halt, or a repeat of the message in this very batch was taken for its
// duplicate, the transaction ends instead: it is tried again with the message
// known, so that the outcome does not depend on how batches are cut.
func (a *attempt) reject(faults []*schema.Fault) error {
	if a.policy.OnError == HaltPartition {
		return schema.Faults(faults)
	}
	for _, f := range faults {
		n := a.place(f.Record)
		if n < 0 || a.repeated(n) {
			return schema.Faults{f}
		}
		a.setAside(n, f)
		if a.policy.OnError == Park && f.Record.Key != nil {
			if a.behind == nil {
				a.behind = map[string]int64{}
			}
			a.behind[string(f.Record.Key)] = f.Record.Offset
		}
	}
	return nil
}

// setAside sets a message aside whose key was admitted with the others: the key
// is forgotten.
func (a *attempt) setAside(n int, f *schema.Fault) {
	a.aside = append(a.aside, f)
	a.forgotten = append(a.forgotten, a.entries[n])
	a.counts.Fresh--
}

// repeated reports whether another message of the batch has the key of
// message n.
func (b *batch) repeated(n int) bool {
	for i := range b.entries {
		if i != n && b.entries[i].Key == b.entries[n].Key {
			return true
		}
	}
	return false
}

// faultsOf returns the faults within an error that name their records.
func faultsOf(err error) []*schema.Fault {
	if all, ok := errors.AsType[schema.Faults](err); ok {
		return all
	}
	if f, ok := errors.AsType[*schema.Fault](err); ok && f.Record != nil {
		return []*schema.Fault{f}
	}
	return nil
}

func blames(faults []*schema.Fault, r *schema.Record) bool {
	return slices.ContainsFunc(faults, func(f *schema.Fault) bool { return f.Record == r })
}

// mergeDead joins faults in the order of their records' offsets.
func mergeDead(a, b []*schema.Fault) []*schema.Fault {
	merged := slices.Concat(a, b)
	slices.SortStableFunc(merged, func(a, b *schema.Fault) int { return int(a.Record.Offset - b.Record.Offset) })
	return merged
}

// haltAt is a fault at which the partition halts whatever on_error says.
type haltAt struct{ *schema.Fault }

// Unwrap returns the fault itself.
func (h *haltAt) Unwrap() error { return h.Fault }

// letter is the dead letter of a fault.
func (p Policy) letter(f *schema.Fault) offsets.DeadLetter {
	d := offsets.DeadLetter{
		Record: f.Record, Reason: f.Reason, Detail: f.Error(), Column: f.Column,
		Parked:     p.OnError == Park && f.Reason != schema.ReasonKeyReuse,
		ByPosition: len(f.Record.Value) > p.MaxDeadLetterValue,
	}
	if server, ok := errors.AsType[*pgconn.PgError](f.Err); ok {
		d.SQLState, d.Constraint = server.Code, server.ConstraintName
	}
	return d
}
