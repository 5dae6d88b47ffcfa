package processor_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// bankAccounts is how many accounts a bank has.
const bankAccounts = 7

// bank is a world whose messages change balances: "m12 3 -45" adds -45 to
// account 3. Some are sent twice, to any partition. What the balances must be is
// added up here, outside SQL.
type bank struct {
	*world
	partitions int32
	messages   int // that are different
	records    int // that were sent
	balances   [bankAccounts]int64
}

// newBank makes a bank of a world of so many partitions.
func newBank(w *world, partitions int32) *bank {
	w.db.Exec(`create table balance (account int primary key, cents bigint not null)`)
	return &bank{world: w, partitions: partitions}
}

// send produces n records to each partition. Every tenth repeats one that this
// or another partition has.
func (b *bank) send(n int) {
	b.tb.Helper()
	for p := range b.partitions {
		var values []string
		for i := range n {
			if i%10 == 9 {
				values = append(values, bankMessage((b.messages*7+i)%b.messages))
				continue
			}
			b.balances[b.messages%bankAccounts] += bankCents(b.messages)
			values = append(values, bankMessage(b.messages))
			b.messages++
		}
		records := make([]schema.Record, len(values))
		for i, v := range values {
			records[i].Value = []byte(v)
		}
		b.produce(p, records...)
	}
	b.records += n * int(b.partitions)
}

func bankCents(n int) int64 { return int64(n*7919%2001 - 1000) }

func bankMessage(n int) string { return fmt.Sprintf("m%d %d %d", n, n%bankAccounts, bankCents(n)) }

// pipeline appends each message and adds its amount up.
func (b *bank) pipeline() processor.Pipeline[string] {
	return texts(sinkFunc(func(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
		var accounts, cents []int64
		for _, m := range batch {
			fields := strings.Fields(m.Body)
			account, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return err
			}
			amount, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				return err
			}
			accounts, cents = append(accounts, account), append(cents, amount)
		}
		_, err := tx.Exec(ctx, `insert into balance as b
			select account, sum(cents) from unnest($1::bigint[], $2::bigint[]) as u (account, cents) group by account order by account
			on conflict (account) do update set cents = b.cents + excluded.cents`, accounts, cents)
		if err != nil {
			return err
		}
		return appendSink{}.Apply(ctx, tx, batch)
	}))
}

// passed waits until the ledger is behind the last record.
func (b *bank) passed() {
	b.tb.Helper()
	b.waitFor(`select coalesce(sum(next_offset), 0) from consumer_offset`, strconv.Itoa(b.records))
}

// check compares effects, keys and balances with what was sent, and that nothing
// was halted or set aside.
func (b *bank) check() {
	b.tb.Helper()
	b.effects(b.messages)
	var want []string
	for account, cents := range b.balances {
		want = append(want, fmt.Sprintf("%d=%d", account, cents))
	}
	for query, want := range map[string]string{
		`select string_agg(account || '=' || cents, ' ' order by account) from balance`: strings.Join(want, " "),
		`select count(*) from processed_message`:                                        strconv.Itoa(b.messages),
		`select count(*) from dead_letter`:                                              "0",
		`select count(*) from consumer_offset where state <> 'open'`:                    "0",
	} {
		if got := b.db.Value(query); got != want {
			b.tb.Errorf("%s\nanswers %s, want %s", query, got, want)
		}
	}
}

// start runs a processor on the bank, in small batches.
func (b *bank) start(tb testing.TB, change func(*processor.Config)) *running {
	tb.Helper()
	cfg := b.config()
	cfg.Batch.MaxRecords = 50
	change(&cfg)
	return start(tb, newProcessor(tb, cfg, b.pipeline()))
}
