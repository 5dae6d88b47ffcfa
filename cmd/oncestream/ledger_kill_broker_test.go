//go:build broker

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

const transferTables = `
create table account (account text, currency char(3), balance numeric(20,2) not null, primary key (account, currency));
create table entry (topic text, partition int, record_offset bigint, record_time timestamptz not null, message_key text not null,
  account text not null, counter_account text not null, currency char(3) not null, amount numeric(20,2) not null,
  primary key (topic, partition, record_offset, account))`

const transferPipeline = `
name: transfers
kafka: {brokers: [127.0.0.1:9092], topic: transfers, start: earliest, session_timeout: 3s}
postgres: {url: "${DATABASE_URL}", idle_timeout: 2s}
batch: {max_records: 250}
key: {field: id}
sinks:
  - ledger: {accounts: account, entries: entry, from: from, to: to, amount: amount, currency: currency}
`

// Proves that a ledger is exact to the cent under kill -9: of two processes that
// transfer among 1,000 accounts from 8 partitions, with one message of twenty
// sent twice, one is killed twice in the middle of its work and started again.
// The sum is zero in each currency, each balance is that of a fold in Go, no
// partition halts, no message is set aside, and no transaction deadlocks.
//
// ONCESTREAM_TEST_RECORDS says how many transfers are sent. Defaults to 20,000.
func TestLedgerKills(t *testing.T) {
	broker := processortest.Broker(t, processortest.BrokerOptions{})
	// A server of its own, whose count of deadlocks has none of other tests.
	db := tablestest.New(t, tablestest.OnServer(tablestest.Server(t).URL("")))
	j := newTransferJob(t, broker.Client, db)
	log := newTransferLog(testRecords(t, 20_000))
	const rounds = 3

	began := time.Now()
	victim, other := j.run(), j.run()
	for round := range rounds {
		j.until("both to be at work", func() bool { return j.owned(victim) > 0 && j.owned(other) > 0 })
		before, share := j.handled(), log.size/rounds
		j.send(broker.Client, log.next(log.size*(round+1)/rounds))
		if round == rounds-1 {
			break
		}
		j.until("some of the transfers", func() bool { return j.handled() > before+int64(share/4) })
		victim.Kill()
		if j.handled() >= j.audit.sent || j.owned(victim) == 0 {
			t.Fatalf("the kill was not in the middle: %d of %d handled, %d partitions held", j.handled(), j.audit.sent, j.owned(victim))
		}
		victim = j.run()
	}
	j.until("the end", func() bool { return j.handled() == j.audit.sent })
	took := time.Since(began)
	j.audit.distinct = int64(log.size - log.repeats)
	j.stops(victim, other)
	j.verifyTransfers(log)
	t.Logf("%s transfers, of which %s were repeats, in %.1f s with two kills; a process had at most %d MiB resident",
		thousands(log.size), thousands(log.repeats), took.Seconds(), j.peak>>20)
}

// newTransferJob is a job on a pipeline of its own, with a ledger as its sink.
func newTransferJob(tb testing.TB, broker *processortest.Client, db *tablestest.DB) *job {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "transfers.yaml")
	must(tb, os.WriteFile(file, []byte(transferPipeline), 0o600))
	broker.CreateTopic(tb, "transfers", 8)
	db.Exec(transferTables)
	return newJob(tb, broker, db, file, "transfers")
}

// send produces records, and counts them in the audit.
func (j *job) send(broker *processortest.Client, partitions [8][]schema.Record) {
	j.tb.Helper()
	for p, records := range partitions {
		broker.Produce(j.tb, j.topic, int32(p), records...)
		j.audit.sent += int64(len(records))
	}
}

// verifyTransfers compares all that the group has left behind with the fold.
func (j *job) verifyTransfers(log *transferLog) {
	j.tb.Helper()
	j.answers(`select string_agg(currency || ' ' || sum, ', ' order by currency) from (select currency, sum(balance) from account group by 1) s`, "EUR 0.00, USD 0.00")
	wrong := 0
	rows := j.db.Rows(`select account || ' ' || currency, balance from account`)
	for _, row := range rows {
		if cents, known := log.balances[row[0]]; !known || row[1] != signedEuros(cents) {
			wrong++
		}
	}
	if wrong > 0 || len(rows) != len(log.balances) {
		j.tb.Errorf("%d of %d balances are not those of the fold, which has %d", wrong, len(rows), len(log.balances))
	}
	j.answers(`select count(*) from account join (select account, currency, sum(amount) from entry group by 1, 2) e using (account, currency) where balance = e.sum`, fmt.Sprint(len(log.balances)))
	j.answers(`select count(*) from entry`, fmt.Sprint(2*j.audit.distinct))
	j.answers(`select count(*) filter (where state <> 'open') || ' halted, ' || sum(dead_letters) || ' set aside' from consumer_offset`, "0 halted, 0 set aside")
	j.answers(`select count(*) from dead_letter`, "0")
	j.answers(`select deadlocks from pg_stat_database where datname = current_database()`, "0")
	for _, m := range j.members {
		for _, line := range m.Lines() {
			if strings.Contains(line, "level=ERROR") || strings.Contains(line, "deadlock") || strings.Contains(line, "40P01") {
				j.tb.Errorf("a process says: %s", line)
			}
		}
	}
	j.verifyStatus()
	if out, code := j.call("replay", j.file); code != 0 || !strings.Contains(out, "nothing new") {
		j.tb.Errorf("the replay ends with exit code %d and says\n%s", code, out)
	}
}

func (j *job) answers(query, want string) {
	j.tb.Helper()
	if got := j.db.Value(query); got != want {
		j.tb.Errorf("%s\nanswers %s, want %s", query, got, want)
	}
}

// signedEuros is euros for what may be below zero.
func signedEuros(cents int64) string {
	if cents < 0 {
		return "-" + euros(-cents)
	}
	return euros(cents)
}

// transferLog makes transfers and folds them in whole cents, without any of the
// code under test.
type transferLog struct {
	size, repeats int
	balances      map[string]int64 // cents by account and currency

	random *rand.Rand
	made   int
	first  []schema.Record // each transfer as it was sent first
}

func newTransferLog(size int) *transferLog {
	return &transferLog{size: size, balances: map[string]int64{}, random: rand.New(rand.NewPCG(1, 2))}
}

// next makes the transfers up to the given one, by partition. Each twentieth is
// one sent before, to the byte, in any partition.
func (l *transferLog) next(upTo int) (partitions [8][]schema.Record) {
	for ; l.made < upTo; l.made++ {
		var r schema.Record
		if l.made%20 == 19 {
			r = l.first[l.random.IntN(len(l.first))]
			l.repeats++
		} else {
			r = l.transfer()
			l.first = append(l.first, r)
		}
		p := l.random.IntN(len(partitions))
		partitions[p] = append(partitions[p], r)
	}
	return partitions
}

func (l *transferLog) transfer() schema.Record {
	const accounts = 1000
	from, to := l.random.IntN(accounts), l.random.IntN(accounts-1)
	if to >= from {
		to++
	}
	cents := 1 + l.random.Int64N(100_000)
	currency := pick(l.random, "EUR", "USD")
	l.balances[fmt.Sprintf("a%d %s", from, currency)] -= cents
	l.balances[fmt.Sprintf("a%d %s", to, currency)] += cents
	return schema.Record{Value: fmt.Appendf(nil, `{"id":"t%d","from":"a%d","to":"a%d","amount":%s,"currency":%q}`,
		l.made, from, to, euros(cents), currency)}
}
