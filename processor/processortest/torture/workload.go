package torture

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// dice is the seeded source of what is not to be foreseen. One goroutine uses it.
type dice struct{ *rand.Rand }

func newDice(seed, use uint64) *dice { return &dice{rand.New(rand.NewPCG(seed, use))} }

// oneIn reports true once in n times.
func (d *dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// The shape of the workload.
const (
	accounts   = 50
	entities   = 40
	duplicates = 20  // one record in so many is sent again
	poisonous  = 200 // one in so many is poison
	remembered = 500 // of so many records one may be sent again
)

// workload makes the records, the same ones for the same seed.
type workload struct {
	dice       *dice
	partitions int
	seq        [entities]int64
	recent     []check.Record
}

func newWorkload(seed uint64, partitions int) *workload {
	return &workload{dice: newDice(seed, 1), partitions: partitions}
}

// next makes a record and its payload. The offset is not known yet.
func (w *workload) next() (r check.Record, payload []byte) {
	if len(w.recent) > 0 && w.dice.oneIn(duplicates) {
		// A producer that tries again may have new partitions by then.
		r = w.recent[w.dice.IntN(len(w.recent))]
		if w.dice.oneIn(2) {
			r.Partition = int32(w.dice.IntN(w.partitions))
		}
		return r, body(r)
	}
	e := w.dice.IntN(entities)
	w.seq[e]++
	from := w.dice.IntN(accounts)
	r = check.Record{
		Partition: int32(e % w.partitions), ID: w.id(), Entity: fmt.Sprintf("entity-%d", e), Seq: w.seq[e],
		From: fmt.Sprintf("account-%d", from), To: fmt.Sprintf("account-%d", (from+1+w.dice.IntN(accounts-1))%accounts),
		Amount: fmt.Sprintf("%d.%02d", w.dice.IntN(100), 1+w.dice.IntN(99)), Currency: []string{"EUR", "USD", "JPY"}[w.dice.IntN(3)],
	}
	if w.dice.oneIn(poisonous) {
		return w.poison(r)
	}
	w.remember(r)
	return r, body(r)
}

// remember keeps a record that may be sent again.
func (w *workload) remember(r check.Record) {
	if len(w.recent) < remembered {
		w.recent = append(w.recent, r)
		return
	}
	w.recent[w.dice.IntN(remembered)] = r
}

// id is a UUID of the workload's own dice.
func (w *workload) id() string {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(w.dice.Uint32())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// body is the payload of a good record.
func body(r check.Record) []byte {
	return fmt.Appendf(nil, `{"id":%q,"entity":%q,"seq":%d,"from":%q,"to":%q,"amount":%s,"currency":%q}`,
		r.ID, r.Entity, r.Seq, r.From, r.To, r.Amount, r.Currency)
}

// poison makes a record bad in one of several ways.
func (w *workload) poison(r check.Record) (check.Record, []byte) {
	good := string(body(r))
	ways := []struct{ reason, payload string }{
		{"decode", good[:len(good)-1]},
		{"key_missing", `{"entity":"nobody"}`},
		{"value_range", fmt.Sprintf(`{"id":%q,"entity":%q,"seq":%d,"from":"a","to":"b","amount":1.005,"currency":"EUR"}`, r.ID, r.Entity, r.Seq)},
		{"value_range", fmt.Sprintf(`{"id":%q,"entity":"a\u0000b","seq":1,"from":"a","to":"b","amount":1,"currency":"EUR"}`, r.ID)},
		{"value_type", fmt.Sprintf(`{"id":%q,"entity":%q,"seq":"many","from":"a","to":"b","amount":1,"currency":"EUR"}`, r.ID, r.Entity)},
		{"not_null", fmt.Sprintf(`{"id":%q,"entity":%q,"seq":null,"from":"a","to":"b","amount":1,"currency":"EUR"}`, r.ID, r.Entity)},
		{"check", fmt.Sprintf(`{"id":%q,"entity":%q,"seq":-1,"from":"a","to":"b","amount":1,"currency":"EUR"}`, r.ID, r.Entity)},
	}
	way := ways[w.dice.IntN(len(ways))]
	r.Poison = way.reason
	return r, []byte(way.payload)
}

// parse reads a record back out of the log. What does not parse as a good record
// is left to the producer's memory, which has it by its payload.
func parse(payload []byte, poison map[string]string) check.Record {
	if reason, ok := poison[string(payload)]; ok {
		return check.Record{Poison: reason}
	}
	var r struct {
		ID, Entity, From, To, Currency string
		Seq                            int64
		Amount                         json.Number
	}
	if err := json.Unmarshal(payload, &r); err != nil {
		return check.Record{Poison: "unknown: " + err.Error()}
	}
	return check.Record{ID: r.ID, Entity: r.Entity, Seq: r.Seq, From: r.From, To: r.To, Amount: r.Amount.String(), Currency: r.Currency}
}
