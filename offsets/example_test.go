package offsets_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// The whole protocol: a worker claims a partition, passes a batch with a repeated
// key, and is fenced when another worker takes over.
func Example() {
	ctx := context.Background()
	db, drop := newExampleDB() // the tables of schema/tables, and those of the user:
	defer drop()
	db.Exec("create table payment (key uuid not null, record_offset bigint not null)")

	ledger := offsets.New(offsets.Options{Schema: db.Schema, Group: "billing", Topic: "payments"})
	must(ledger.Register(ctx, db.Pool))

	// Where does the group begin? Asked once in its life, stored before the
	// first fetch. After that the ledger alone decides.
	topic := offsets.Identity{ClusterID: "prod", TopicID: [16]byte{1}}
	decided, err := ledger.Start(ctx, db.Pool, topic, []offsets.Assigned{{Partition: 0, Start: 100}})
	fmt.Println("first start:", decided, err)

	// Kafka assigns partition 0 to us.
	claims, refused, err := ledger.Claim(ctx, db.Pool, "worker-a", topic, []offsets.Assigned{{Partition: 0}})
	fmt.Println("claimed:", claims, refused, err)
	ours := claims[0]

	// We fetch from ours.Next and handle what comes in one transaction.
	batch := []offsets.Entry{
		{Key: keyOf("order-1"), Offset: 100, PayloadSum: 7},
		{Key: keyOf("order-2"), Offset: 101, PayloadSum: 8},
		{Key: keyOf("order-1"), Offset: 102, PayloadSum: 7}, // the producer tried again
	}
	to := offsets.Position{Next: 103, LeaderEpoch: -1, Records: 3}
	next, err := pass(ctx, db.Pool, ledger, ours, to, batch)
	must(err)
	ours = next // only now, since only now COMMIT has been answered
	fmt.Println("payments:", db.Value("select count(*) from payment"), "next:", ours.Next)

	// We stall; Kafka gives the partition to another worker, who claims it.
	_, _, err = ledger.Claim(ctx, db.Pool, "worker-b", topic, []offsets.Assigned{{Partition: 0}})
	must(err)
	_, err = pass(ctx, db.Pool, ledger, ours, offsets.Position{Next: 104, LeaderEpoch: -1, Records: 1}, []offsets.Entry{{Key: keyOf("order-3"), Offset: 103}})
	fmt.Println("fenced:", errors.Is(err, offsets.ErrFenced))

	progress, err := ledger.Progress(ctx, db.Pool)
	must(err)
	p := progress[0]
	fmt.Printf("%s holds epoch %d, next %d: %d records, %d applied, %d duplicate\n", p.Owner, p.Epoch, p.Next, p.Records, p.Applied(), p.DuplicatesProducer)

	// Output:
	// first start: true <nil>
	// claimed: [{0 1 100 -1}] [] <nil>
	// payments: 2 next: 103
	// fenced: true
	// worker-b holds epoch 2, next 103: 3 records, 2 applied, 1 duplicate
}

// pass is a batch: the advance, the keys, the effects and the account, and COMMIT.
func pass(ctx context.Context, db offsets.DB, ledger *offsets.Ledger, ours offsets.Claim, to offsets.Position, batch []offsets.Entry) (offsets.Claim, error) {
	next := ours
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		claim, admissions, err := ledger.AdvanceAndAdmit(ctx, tx, ours, to, batch)
		if err != nil {
			return err
		}
		for i, a := range admissions {
			if a.Outcome != offsets.Fresh {
				continue
			}
			if _, err := tx.Exec(ctx, "insert into payment values ($1, $2)", batch[i].Key, batch[i].Offset); err != nil {
				return err
			}
		}
		next = claim
		return ledger.Account(ctx, tx, claim, offsets.Count(admissions))
	})
	if err != nil {
		// Not done, or not known: a COMMIT without an answer is Reclaim's to find out.
		return ours, err
	}
	return next, nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
