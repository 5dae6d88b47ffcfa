package processortest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/schema"
)

// Transaction is an open transaction of a transactional producer.
type Transaction struct {
	id     string
	client *kgo.Client
}

// Begin opens a transaction under a transactional id. A transaction of the same
// id that is still open is aborted by the broker. One that is left open at the
// end of the test is aborted then; until that it holds back the last stable
// offset of the partitions it wrote to.
func (c *Client) Begin(tb testing.TB, id string) *Transaction {
	tb.Helper()
	k := c.dial(tb, kgo.TransactionalID(id), kgo.TransactionTimeout(time.Minute))
	tx := &Transaction{id: id, client: k}
	tb.Cleanup(func() {
		// The test's own context has ended by now, and the broker may be gone.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = k.EndTransaction(ctx, kgo.TryAbort)
		k.Close()
	})
	if err := k.BeginTransaction(); err != nil {
		tb.Fatalf("processortest: begin transaction %s: %v", id, err)
	}
	return tx
}

// Produce writes records within the transaction; see [Client.Produce].
func (x *Transaction) Produce(tb testing.TB, topic string, partition int32, records ...schema.Record) []int64 {
	tb.Helper()
	return produce(tb, x.client, topic, partition, records)
}

// Commit ends the transaction so that read_committed consumers see its records.
// Its marker takes one offset in each partition written to.
func (x *Transaction) Commit(tb testing.TB) {
	tb.Helper()
	x.end(tb, kgo.TryCommit)
}

// Abort ends the transaction; read_committed consumers never see its records.
// Its marker takes one offset in each partition written to.
func (x *Transaction) Abort(tb testing.TB) {
	tb.Helper()
	x.end(tb, kgo.TryAbort)
}

// end ends the transaction and waits until its markers are written: the broker
// answers before that, and a record produced at once could come before a marker.
func (x *Transaction) end(tb testing.TB, how kgo.TransactionEndTry) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), callTimeout)
	defer cancel()
	err := x.client.EndTransaction(ctx, how)
	if err == nil {
		err = retry(ctx, 10*time.Millisecond, func() error { return x.ended(ctx) })
	}
	if err != nil {
		tb.Fatalf("processortest: end transaction %s (commit %v): %v", x.id, bool(how), err)
	}
}

// ended returns an error until the coordinator says that nothing is left to do.
func (x *Transaction) ended(ctx context.Context) error {
	all, err := kadm.NewClient(x.client).DescribeTransactions(ctx, x.id)
	if err != nil {
		return err
	}
	t := all[x.id]
	if t.Err == nil && (t.State == "Empty" || strings.HasPrefix(t.State, "Complete")) {
		return nil
	}
	return errors.Join(fmt.Errorf("its state is %q", t.State), t.Err)
}
