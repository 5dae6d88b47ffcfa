package offsets_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncestream/oncestream/offsets"
)

// A person leaves out one record, and looks first at what that does. A change that
// makes no sense is refused.
func ExampleLedger_Apply() {
	ctx := context.Background()
	db, drop := newExampleDB()
	defer drop()
	ledger := offsets.New(offsets.Options{Schema: db.Schema, Group: "billing", Topic: "payments"})
	_, err := ledger.Start(ctx, db.Pool, offsets.Identity{ClusterID: "prod"}, []offsets.Assigned{{Partition: 0, Start: 100}})
	must(err)

	skip := []offsets.Change{{Partition: 0, Action: offsets.Skip, To: 101}}
	plan, err := ledger.Plan(ctx, db.Pool, skip)
	must(err)
	fmt.Println("would leave out", plan[0].LeftOut, "of partition", plan[0].Partition)

	note := offsets.Note{By: "ada", Reason: "no key, ticket 1234"}
	done, err := ledger.Apply(ctx, db.Pool, skip, note, 0)
	must(err)
	fmt.Println("goes on at", done[0].To, "in epoch", done[0].Epoch)

	_, err = ledger.Apply(ctx, db.Pool, skip, note, 0)
	_, refused := errors.AsType[*offsets.RefusedChange](err)
	fmt.Println("refused:", refused, err)

	changes, err := ledger.Changes(ctx, db.Pool, 10)
	must(err)
	fmt.Println(changes[0].Action, "by", changes[0].By, "because:", changes[0].Reason)

	// Output:
	// would leave out 1 of partition 0
	// goes on at 101 in epoch 1
	// refused: true offsets: change payments: skip payments/0@101: the stored offset is 101, and a skip goes forward: to read records again say rewind
	// skip by ada because: no key, ticket 1234
}
