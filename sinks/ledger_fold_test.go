package sinks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// ledgerSize is how many transfers the random test makes; the whole number of
// the project's claim is 200000.
func ledgerSize(t *testing.T) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("ONCESTREAM_LEDGER_TRANSFERS"), "20000"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Proves under concurrency that balances are those of a fold in Go, that the sum
// is zero in each currency, and that no deadlock reaches the user: random
// transfers among 1,000 accounts from 8 partitions at once, with batches that
// are rolled back and messages that come twice.
func TestLedgerAgainstFold(t *testing.T) {
	const partitions, accounts, size = 8, 1000, 250
	db := tablestest.New(t)
	db.Exec(ledgerTables + `; create table seen (key uuid primary key)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](transferLedger()))
	each := ledgerSize(t) / partitions
	logs := make([][]schema.Message[schema.Row], partitions)
	for p := range logs {
		logs[p] = randomTransfers(t, int32(p), each, accounts)
	}
	var workers errgroup.Group
	for p := range logs {
		workers.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(p)))
			for i := 0; i < each; i += size {
				part := logs[p][max(0, i-random.IntN(size)):min(i+size, each)] // begins with some that came before
				if random.IntN(4) == 0 {
					if err := applyFresh(t.Context(), db, sink, part, errDown); !errors.Is(err, errDown) {
						return err
					}
				}
				if err := applyFresh(t.Context(), db, sink, part, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	equal(t, compact(db, `select currency, sum(balance) from account group by 1 order by 1`), "EUR,0.00 USD,0.00")
	equal(t, compact(db, `select account, currency, balance from account order by account collate "C", currency`), foldTransfers(t, logs))
	equal(t, db.Value(`select count(*) from account a join (select account, currency, sum(amount) from entry group by 1, 2) e using (account, currency) where a.balance <> e.sum`), "0")
	equal(t, db.Value(`select count(*) from entry`), fmt.Sprint(2*each*partitions))
}

// randomTransfers is the log of one partition.
func randomTransfers(t *testing.T, partition int32, n, accounts int) []schema.Message[schema.Row] {
	random := rand.New(rand.NewPCG(2, uint64(partition)))
	var lines []string
	for range n {
		from, to := random.IntN(accounts), random.IntN(accounts-1)
		if to >= from {
			to++
		}
		amount := fmt.Sprintf("%d.%02d", random.IntN(1000), 1+random.IntN(99))
		lines = append(lines, moveLine(fmt.Sprintf("a%03d", from), fmt.Sprintf("a%03d", to), amount, []string{"EUR", "USD"}[random.IntN(2)]))
	}
	messages := batch(t, transfers, lines...)
	for i := range messages {
		messages[i].Partition = partition
		messages[i].ID = schema.NewKey(fmt.Append(nil, partition), fmt.Append(nil, i))
	}
	return messages
}

// applyFresh applies the messages whose key is new, and fails with the given
// error at the end, as a worker that is killed.
func applyFresh(ctx context.Context, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row], end error) error {
	return pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
		keys := make([][16]byte, len(batch))
		for i := range batch {
			keys[i] = batch[i].ID.ID
		}
		rows, err := tx.Query(ctx, `insert into seen select unnest($1::uuid[]) on conflict do nothing returning key`, keys)
		if err != nil {
			return err
		}
		added, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err != nil {
			return err
		}
		isNew := make(map[[16]byte]bool, len(added))
		for _, key := range added {
			isNew[key] = true
		}
		var fresh []schema.Message[schema.Row]
		for _, m := range batch {
			if isNew[m.ID.ID] {
				fresh = append(fresh, m)
			}
		}
		return errors.Join(sink.Apply(ctx, tx, fresh), end)
	})
}

// foldTransfers is the second implementation: decimals of apd in a Go map.
func foldTransfers(t *testing.T, logs [][]schema.Message[schema.Row]) string {
	exact := apd.BaseContext.WithPrecision(100)
	exact.Traps |= apd.Inexact | apd.Rounded
	balances := map[string]*apd.Decimal{}
	at := func(account, currency []byte) *apd.Decimal {
		key := string(account) + "," + string(currency)
		if balances[key] == nil {
			balances[key] = apd.New(0, -2)
		}
		return balances[key]
	}
	for _, log := range logs {
		for _, m := range log {
			amount, _, err := apd.NewFromString(string(m.Body.Get("amount").Raw))
			if err != nil {
				t.Fatal(err)
			}
			currency := m.Body.Get("currency").Raw
			from, to := at(m.Body.Get("from").Raw, currency), at(m.Body.Get("to").Raw, currency)
			_, err1 := exact.Sub(from, from, amount)
			_, err2 := exact.Add(to, to, amount)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
		}
	}
	var lines []string
	for key, d := range balances {
		lines = append(lines, key+","+d.Text('f'))
	}
	return joinSorted(lines)
}

// Proves that with NonNegative no interleaving of workers leaves an account
// below zero, and that money is conserved, when each sets aside what its batch
// cannot pay.
func TestLedgerNonNegativeConcurrent(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(ledgerTables + `; alter table account add check (balance >= 0);
		insert into account select 'a' || to_char(i, 'FM000'), c, 200 from generate_series(0, 19) i, unnest('{EUR,USD}'::text[]) c`)
	ledger := transferLedger()
	ledger.NonNegative = true
	sink := prepared(t, db, sinks.Sink[schema.Row](ledger))
	refused := make(chan int, 4)
	var workers errgroup.Group
	for p := range cap(refused) {
		log := randomTransfers(t, int32(p), 500, 20)
		workers.Go(func() error {
			n := 0
			for i := 0; i < len(log); i += 50 {
				less, err := applyPayable(t.Context(), db, sink, log[i:i+50])
				if err != nil {
					return err
				}
				n += less
			}
			refused <- n
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for range cap(refused) {
		total += <-refused
	}
	if total == 0 || total == 2000 {
		t.Errorf("%d of 2000 transfers were refused, which proves nothing", total)
	}
	equal(t, compact(db, `select currency, sum(balance), min(balance) >= 0 from account group by 1 order by 1`), "EUR,4000.00,t USD,4000.00,t")
	equal(t, db.Value(`select count(*) from entry`), fmt.Sprint(2*(2000-total)))
}

// applyPayable applies a batch without those that cannot be paid, as the engine
// does: what is named at fault is taken out, and the rest is tried again. The
// savepoint lets the accounts go, so that there may be more of them then.
func applyPayable(ctx context.Context, db *tablestest.DB, sink sinks.Sink[schema.Row], batch []schema.Message[schema.Row]) (refused int, err error) {
	err = pgx.BeginFunc(ctx, db.Pool, func(tx pgx.Tx) error {
		for rest := batch; ; {
			err := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error { return sink.Apply(ctx, savepoint, rest) })
			faults, ok := errors.AsType[schema.Faults](err)
			if !ok {
				return err
			}
			refused += len(faults)
			rest = slices.DeleteFunc(slices.Clone(rest), func(m schema.Message[schema.Row]) bool {
				return slices.ContainsFunc(faults, func(f *schema.Fault) bool { return f.Record == m.Record })
			})
		}
	})
	return refused, err
}
