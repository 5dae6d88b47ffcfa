package sinks_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

// balances adds `amount` and counts, by account.
func balances() *sinks.Sum[schema.Row] {
	return &sinks.Sum[schema.Row]{
		Table: "balance",
		Key:   []sinks.Column[schema.Row]{sinks.Field("account", "account")},
		Add:   []sinks.Column[schema.Row]{sinks.Field("total", "amount"), sinks.Const[schema.Row]("n", 1)},
	}
}

var amounts = schema.NewFields("account", "amount")

// Proves that amounts are added exactly to rows that are there and to new ones,
// and that a total of null counts as 0.
func TestSum(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table balance (account text primary key, total numeric(20,2), n bigint not null);
		insert into balance values ('a', 0.10, 5), ('b', null, 0)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](balances()))
	mustApply(t, db, sink, batch(t, amounts,
		`1={"account":"b","amount":0.1}`, `2={"account":"a","amount":"0.20"}`, `3={"account":"c","amount":-1e2}`,
		`4={"account":"a","amount":99999999999999999.99}`, `5={"account":"b","amount":0.2}`,
	))
	equal(t, compact(db, `select * from balance order by 1`), "a,100000000000000000.29,7 b,0.30,2 c,-100.00,1")
}

// Proves that an amount that would be changed on its way is a fault of its own
// message, with the field and the column.
func TestSumFaults(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table balance (account text primary key, total numeric(8,2), n int not null)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](balances()))
	for payload, want := range map[string]string{
		``:                                 "1 tombstone  ",
		`{"account":"a"}`:                  "1 not_null amount total",
		`{"account":"a","amount":null}`:    "1 not_null amount total",
		`{"account":"a","amount":0.001}`:   "1 value_range amount total",
		`{"account":"a","amount":1e6}`:     "1 value_range amount total",
		`{"account":"a","amount":"1,5"}`:   "1 value_type amount total",
		`{"account":"a","amount":true}`:    "1 value_type amount total",
		`{"amount":1}`:                     "1 not_null account account",
		`{"account":null,"amount":1}`:      "1 not_null account account",
		`{"account":"a\u0000","amount":1}`: "1 value_range account account",
	} {
		err := apply(t, db, sink, batch(t, amounts, `1={"account":"a","amount":1}`, "2="+payload))
		if got := faultOf(t, err); got != want {
			t.Errorf("%s: got %q, want %q (%v)", payload, got, want, err)
		}
	}
	equal(t, db.Value(`select count(*) from balance`), "0")
}

// Proves case C42: a counter at the limit of its type is refused by PostgreSQL
// with 22003, whether the table's total or the batch's own sum is too large.
func TestSumOverflow(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table counters (counter text primary key, n int not null); insert into counters values ('c1', 2147483640)`)
	fields := schema.NewFields("counter", "n")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Sum[schema.Row]{
		Table: "counters",
		Key:   []sinks.Column[schema.Row]{sinks.Field("counter", "counter")},
		Add:   []sinks.Column[schema.Row]{sinks.Field("n", "n")},
	}))
	var ten []string
	for range 10 {
		ten = append(ten, `c1={"counter":"c1","n":1}`)
	}
	equal(t, sqlstate(t, apply(t, db, sink, batch(t, fields, ten...))), "22003")
	big := `c2={"counter":"c2","n":2000000000}`
	equal(t, sqlstate(t, apply(t, db, sink, batch(t, fields, big, big))), "22003")
	mustApply(t, db, sink, batch(t, fields, ten[:7]...))
	equal(t, compact(db, `select * from counters`), "c1,2147483647")
}

// Proves that keys which PostgreSQL holds equal are one key of the batch.
func TestSumEqualKeys(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table k (n numeric, c char(3), f float8, n2 bigint not null, primary key (n, c, f))`)
	fields := schema.NewFields("n", "c", "f")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Sum[schema.Row]{
		Table: "k",
		Key:   []sinks.Column[schema.Row]{sinks.Field("n", "n"), sinks.Field("c", "c"), sinks.Field("f", "f")},
		Add:   []sinks.Column[schema.Row]{sinks.Const[schema.Row]("n2", 1)},
	}))
	mustApply(t, db, sink, batch(t, fields,
		`1={"n":1.0,"c":"a","f":0}`, `2={"n":1.00,"c":"a ","f":-0.0}`, `3={"n":10e-1,"c":"a","f":0e5}`,
		`4={"n":100,"c":"b","f":1}`, `5={"n":"1e2","c":"b","f":1.0}`, `6={"n":10000,"c":"b","f":1}`, `7={"n":0.0,"c":"","f":1}`, `8={"n":0,"c":" ","f":1}`, `9={"n":0.050,"c":"b","f":1}`,
	))
	equal(t, compact(db, `select n, f, n2 from k order by n`), "0,1,2 0.05,1,1 1,0,3 100,1,2 10000,1,1")
}

// Proves what Prepare refuses.
func TestSumConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table balance (account text, total float8, n int not null)`)
	err := prepare(t, db, sinks.Sink[schema.Row](balances()))
	equal(t, fmt.Sprint(err), strings.Join([]string{
		"sinks: sum balance: no unique index on (account) of table balance, nor any other one",
		`sinks: sum balance: column "total" is a double precision, and a sum is exact only in smallint, integer, bigint and numeric`,
	}, "\n"))
	err = prepare(t, db, sinks.Sink[schema.Row](&sinks.Sum[schema.Row]{Table: "balance"}))
	equal(t, fmt.Sprint(err), "sinks: sum balance: both Key and Add are needed: which row, and what to add to it")
}

// Proves against a second implementation, apd with rounding trapped, that the
// totals of random amounts in random batches are exact to the last digit.
func TestSumAgainstDecimals(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table balance (account int primary key, total numeric, n bigint not null)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](balances()))
	exact := apd.BaseContext.WithPrecision(500)
	exact.Traps |= apd.Inexact | apd.Rounded
	rapid.Check(t, func(rt *rapid.T) {
		amount := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,25})?([eE][+-]?[0-9])?`)
		want := map[int]*apd.Decimal{}
		var lines []string
		for range rapid.IntRange(1, 30).Draw(rt, "n") {
			account, literal := rapid.IntRange(1, 3).Draw(rt, "account"), amount.Draw(rt, "amount")
			lines = append(lines, fmt.Sprintf(`k={"account":%d,"amount":%s}`, account, literal))
			if want[account] == nil {
				want[account] = new(apd.Decimal)
			}
			d, _, err := apd.NewFromString(literal)
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := exact.Add(want[account], want[account], d); err != nil {
				rt.Fatal(err)
			}
		}
		messages := batch(t, amounts, lines...)
		cut := rapid.IntRange(0, len(messages)).Draw(rt, "cut")
		got := totals(t.Context(), rt, db, sink, messages[:cut], messages[cut:])
		for account, d := range want {
			if g, _, err := apd.NewFromString(got[account]); err != nil || g.Cmp(d) != 0 {
				rt.Fatalf("account %d: got %s (%v), want %s", account, got[account], err, d)
			}
		}
	})
}

// totals applies the batches and reads the totals in a transaction that is
// rolled back.
func totals(ctx context.Context, rt *rapid.T, db *tablestest.DB, sink sinks.Sink[schema.Row], batches ...[]schema.Message[schema.Row]) map[int]string {
	tx, err := db.Pool.Begin(ctx)
	if err != nil {
		rt.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, b := range batches {
		if err := sink.Apply(ctx, tx, b); err != nil {
			rt.Fatal(err)
		}
	}
	rows, err := tx.Query(ctx, `select account, total::text from balance where n > $1`, 0)
	if err != nil {
		rt.Fatal(err)
	}
	got := map[int]string{}
	var account int
	var total string
	_, err = pgx.ForEachRow(rows, []any{&account, &total}, func() error {
		got[account] = total
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	return got
}
