package sinks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

const ledgerTables = `
	create table account (account text, currency char(3), balance numeric(12,2) not null, primary key (account, currency));
	create table entry (topic text, partition int, record_offset bigint, record_time timestamptz not null, message_key text not null,
		account text not null, counter_account text not null, currency char(3) not null, amount numeric(12,2) not null,
		primary key (topic, partition, record_offset, account))`

var transfers = schema.NewFields("from", "to", "amount", "currency")

func transferLedger() *sinks.Ledger[schema.Row] {
	return &sinks.Ledger[schema.Row]{
		Accounts: "account", Entries: "entry",
		From: sinks.Field("", "from"), To: sinks.Field("", "to"), Amount: sinks.Field("", "amount"), Currency: sinks.Field("", "currency"),
	}
}

func moveLine(from, to, amount, currency string) string {
	return fmt.Sprintf(`k={"from":%q,"to":%q,"amount":%s,"currency":%q}`, from, to, amount, currency)
}

// Proves that a transfer is two entries and two balances, that currencies do not
// mix, and that entries say where they are from.
func TestLedger(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(ledgerTables + `; insert into account values ('ada', 'EUR', 0.10)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](transferLedger()))
	messages := batch(t, transfers, moveLine("ada", "bob", `1.1`, "EUR"), moveLine("bob", "ada", `"7"`, "USD"))
	messages[0].ID = schema.NewKey([]byte("payment-1"))
	mustApply(t, db, sink, messages)
	equal(t, compact(db, `select * from account order by 1, 2`), "ada,EUR,-1.00 ada,USD,7.00 bob,EUR,1.10 bob,USD,-7.00")
	equal(t, compact(db, `select record_offset, account, counter_account, currency, amount from entry order by 1, 5`),
		"0,ada,bob,EUR,-1.10 0,bob,ada,EUR,1.10 1,bob,ada,USD,-7.00 1,ada,bob,USD,7.00")
	equal(t, compact(db, `select topic, partition, message_key, record_time = 'epoch'::timestamptz + interval '1767323045.678 s' from entry where record_offset = 0 limit 1`), "t,0,payment-1,t")
}

// Proves that what a message cannot mean is its own fault, all of a batch at
// once, and that nothing is written then.
func TestLedgerFaults(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(ledgerTables)
	sink := prepared(t, db, sinks.Sink[schema.Row](transferLedger()))
	lines := []string{moveLine("a", "b", "1", "EUR")}
	var want []string
	for _, c := range [][2]string{
		{``, "tombstone  "},
		{`{"to":"b","amount":1,"currency":"EUR"}`, "not_null from account"},
		{`{"from":"a","to":null,"amount":1,"currency":"EUR"}`, "not_null to counter_account"},
		{`{"from":"a","to":"b","currency":"EUR"}`, "not_null amount amount"},
		{`{"from":"a","to":"b","amount":1}`, "not_null currency currency"},
		{`{"from":"a","to":"a","amount":1,"currency":"EUR"}`, "value_range to counter_account"},
		{`{"from":"a","to":"b","amount":0.00,"currency":"EUR"}`, "value_range amount amount"},
		{`{"from":"a","to":"b","amount":-1,"currency":"EUR"}`, "value_range amount amount"},
		{`{"from":"a","to":"b","amount":0.001,"currency":"EUR"}`, "value_range amount amount"},
		{`{"from":"a","to":"b","amount":1e10,"currency":"EUR"}`, "value_range amount amount"},
		{`{"from":"a","to":"b","amount":"x","currency":"EUR"}`, "value_type amount amount"},
		{`{"from":"a","to":"b","amount":1,"currency":"EURO"}`, "value_range currency currency"},
	} {
		lines = append(lines, "k="+c[0])
		want = append(want, fmt.Sprintf("%d %s\n", len(lines)-1, c[1]))
	}
	equal(t, faultsOf(t, apply(t, db, sink, batch(t, transfers, lines...))), strings.Join(want, ""))
	equal(t, db.Value(`select count(*) from account`)+db.Value(`select count(*) from entry`), "00")
}

// faultsOf tells all faults of a batch, one a line.
func faultsOf(tb testing.TB, err error) string {
	tb.Helper()
	all, ok := errors.AsType[schema.Faults](err)
	if !ok {
		tb.Fatalf("want schema.Faults, got %v", err)
	}
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = faultOf(tb, f) + "\n"
	}
	return strings.Join(lines, "")
}

// Proves that funds are judged in the order of the batch, by what the messages
// before have left, that what cannot be paid leaves no trace in later verdicts,
// and that the accounts of Overdraft are not bound.
func TestLedgerFunds(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(ledgerTables + `; insert into account values ('debt', 'EUR', -5)`)
	ledger := transferLedger()
	ledger.NonNegative, ledger.Overdraft = true, []string{"world"}
	sink := prepared(t, db, sinks.Sink[schema.Row](ledger))
	lines := []string{
		moveLine("world", "ada", "10", "EUR"),
		moveLine("ada", "bob", "10.01", "EUR"), // more than there is
		moveLine("bob", "eve", "1", "EUR"),     // hence bob has nothing
		moveLine("ada", "bob", "10", "EUR"),    // which is still there
		moveLine("bob", "eve", "10", "EUR"),
		moveLine("ada", "eve", "0.01", "EUR"),
		moveLine("eve", "ada", "10", "USD"), // another currency has another balance
		moveLine("eve", "debt", "1", "EUR"), // to an account below zero
		moveLine("debt", "eve", "0.01", "EUR"),
	}
	messages := batch(t, transfers, lines...)
	err := apply(t, db, sink, messages)
	equal(t, faultsOf(t, err), "1 insufficient_funds amount balance\n2 insufficient_funds amount balance\n5 insufficient_funds amount balance\n"+
		"6 insufficient_funds amount balance\n8 insufficient_funds amount balance\n")
	faults, _ := errors.AsType[schema.Faults](err)
	equal(t, faults[0].Error(), "t/0@1: insufficient_funds: field amount: column balance: the account lacks 0.01 of it")
	equal(t, db.Value(`select count(*) from account where account <> 'debt'`), "0")

	good := []schema.Message[schema.Row]{messages[0], messages[3], messages[4], messages[7]}
	mustApply(t, db, sink, good)
	equal(t, compact(db, `select account, balance from account order by 1`), "ada,0.00 bob,0.00 debt,-4.00 eve,9.00 world,-10.00")
}

// Proves that a balance which would leave its column is the fault of the message
// that it leaves it by.
func TestLedgerBalanceOverflow(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(ledgerTables)
	sink := prepared(t, db, sinks.Sink[schema.Row](transferLedger()))
	err := apply(t, db, sink, batch(t, transfers,
		moveLine("a", "b", "9999999999.99", "EUR"), moveLine("c", "b", "0.01", "EUR"), moveLine("a", "c", "1", "EUR"), moveLine("b", "c", "1", "EUR")))
	equal(t, faultsOf(t, err), "1 value_range amount balance\n2 value_range amount balance\n")
}

// Proves that ids which PostgreSQL alone finds equal cannot lose an amount.
func TestLedgerAliases(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		create table account (account text collate loose, currency char(3), balance numeric not null, primary key (account, currency));
		create table entry (topic text, partition int, record_offset bigint, record_time timestamptz, message_key text,
			account text, counter_account text, currency char(3), amount numeric)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](transferLedger()))
	err := apply(t, db, sink, batch(t, transfers, moveLine("Ada", "bob", "1", "EUR"), moveLine("ada", "bob", "1", "EUR")))
	if err == nil {
		t.Errorf("got %s, want an error", compact(db, `select * from account`))
	}
	equal(t, db.Value(`select count(*) from entry`), "0")
}

// Proves what Prepare refuses.
func TestLedgerConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table a1 (account interval not null, currency text not null, balance double precision, primary key (account, currency));
		create table e1 (account int, counter_account text, currency text, amount numeric)`)
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.Ledger[schema.Row]{Accounts: "a1", Entries: "e1"}))
	for _, want := range []string{`no column "message_key"`, `no column "record_time"`, "no From: make it", "no Currency: make it"} {
		wantText(t, err, "sinks: ledger e1: ", want)
	}
	db.Exec(ledgerTables + `; alter table account drop constraint account_pkey; alter table account alter account drop not null`)
	wantText(t, prepare(t, db, sinks.Sink[schema.Row](transferLedger())), `column "account" of table account may be null`)
	db.Exec(`alter table account alter account set not null`)
	wantText(t, prepare(t, db, sinks.Sink[schema.Row](transferLedger())), "no unique index on (account, currency)")
	db.Exec(`alter table account add primary key (account, currency); alter table entry alter counter_account type varchar(9)`)
	wantText(t, prepare(t, db, sinks.Sink[schema.Row](transferLedger())), `column "counter_account" of table entry is a character varying(9) and column "account" of table account a text`)
}
