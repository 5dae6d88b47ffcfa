package offsets

import "fmt"

const sqlFind = `
select key, partition, record_offset, payload_sum, processed_at, result
from $processed_message
where handler = $2 and key = any ($1::uuid[])`

// A session plans a statement anew for its first five executions and then keeps
// one plan for all, made for ten keys. Made while the table has a few pages only,
// and is known to by a vacuum, that plan reads the whole table and compares each
// row with each key: seconds for a batch, as soon as the table has grown, and until
// the next analyze. So the statement has several texts, which differ by a comment
// and are planned each for itself.
const (
	findFew   = iota // few keys, while the table may be small: any plan will do
	findEarly        // many keys, while the table may be small: soon replaced
	findLate         // the table has the keys that this ledger has written
	findPlans

	fewKeys  = 100  // below, comparing each row with each key does little harm
	lateKeys = 5000 // with so many rows, the plan for ten keys is the index
)

func findVariants(sql string) (variants [findPlans]string) {
	for i := range variants {
		variants[i] = fmt.Sprintf("%s /* plan %d */", sql, i)
	}
	return variants
}

// findPlan chooses the text of the statement that finds as many keys.
func (l *Ledger) findPlan(keys int) int {
	switch {
	case l.written.Load() >= lateKeys:
		return findLate
	case keys >= fewKeys:
		return findEarly
	}
	return findFew
}

// findArgs are the parameters of sqlFind, for the keys at the places.
func (l *Ledger) findArgs(f *folded, places []int) []any {
	return []any{column{f.entries, places, keyCell}, l.id()}
}
