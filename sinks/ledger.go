package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// Ledger keeps accounts by double entry: each message is a transfer of an amount
// from one account to another. It appends two entries, which add up to zero, and
// changes two balances by them, so that the sum of all balances of a currency
// stays what it was: money is neither made nor lost. Where money comes in or goes
// out, an account stands for the outside, such as "world", and is as far below
// zero as all others are above.
//
// It needs two tables. Names of tables and types are free, names of columns are
// these; more columns can be there if they have a default or may be null:
//
//	create table account (
//		account  text not null,            -- any type that Go can compare: bigint, uuid, text …
//		currency char(3) not null,
//		balance  numeric(20,2) not null,   -- or an integer type, for minor units
//		primary key (account, currency)
//	);
//	create table entry (                   -- only ever appended to
//		topic           text not null,
//		partition       int not null,
//		record_offset   bigint not null,
//		record_time     timestamptz not null,
//		message_key     text not null,     -- the idempotency key; also of type uuid
//		account         text not null,
//		counter_account text not null,
//		currency        char(3) not null,
//		amount          numeric(20,2) not null, -- below zero where it leaves the account
//		primary key (topic, partition, record_offset, account)
//	);
//
// An account is one row for each currency, and begins at 0 when it is first met;
// a transfer never mixes two currencies. The last line is the user's choice: a
// backstop behind the keys, which makes a second application an error.
//
// Amounts are exact: nothing is rounded. A value that is missing, null or does
// not fit, an amount that is not above zero, a transfer from an account to
// itself, a balance that would leave its column's range, and a tombstone are
// faults of their message. With NonNegative a transfer that the account it comes
// from cannot pay is a [schema.ReasonFunds] fault: it is judged in the order of
// the batch, by the balance that the messages before it have left, while the
// account is locked.
//
// A batch makes four statements: accounts that are new, the balances under lock,
// the new balances, the entries. Rows are locked in the order of the accounts by
// all workers, so that two of them cannot deadlock here. Workers whose transfers
// share an account wait for each other, one batch for another.
//
// Running again on the same batch transfers again: Ledger relies on the
// idempotency key. Use it as a pointer, and call Prepare first.
type Ledger[T any] struct {
	// Accounts and Entries are the names of the tables; see [Describe].
	Accounts, Entries string
	// From and To are the accounts that the amount goes from and to, Currency is
	// what it is counted in. The Name of these columns is not used.
	From, To, Amount, Currency Column[T]
	// NonNegative refuses a transfer that would leave the account it comes from
	// below zero. Defaults to false.
	NonNegative bool
	// Overdraft are the accounts that NonNegative does not bind, such as "world".
	Overdraft []string

	plan atomic.Pointer[ledgerPlan[T]]
}

var _ Sink[schema.Row] = (*Ledger[schema.Row])(nil)

// The places of the columns of an entry.
const (
	ledgerFrom = iota
	ledgerTo
	ledgerCurrency
	ledgerAmount
)

// ledgerPlan is what Prepare found out. It does not change.
type ledgerPlan[T any] struct {
	open, lock, settle, append string // the statements
	entry                      *rowEncoder[T]
	account                    []*target // of Accounts: account, currency, balance
	nonNegative                bool
	overdraft                  map[string]bool // by the cell of the account
	memory                     sync.Pool       // of *ledgerMemory
}

// Prepare looks at the tables. It may be called again at any time.
func (s *Ledger[T]) Prepare(ctx context.Context, conn *pgx.Conn) error {
	plan, err := s.prepare(ctx, conn)
	if err != nil {
		return prefixed(err, "sinks: "+s.what())
	}
	s.plan.Store(plan)
	return nil
}

func (s *Ledger[T]) what() string { return "ledger " + s.Entries }

func (s *Ledger[T]) prepare(ctx context.Context, conn *pgx.Conn) (*ledgerPlan[T], error) {
	if err := checkMode(conn); err != nil {
		return nil, err
	}
	accounts, err := Describe(ctx, conn, s.Accounts)
	entries, err2 := Describe(ctx, conn, s.Entries)
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	return s.compile(accounts, entries)
}

func (s *Ledger[T]) compile(accounts, entries *Table) (*ledgerPlan[T], error) {
	columns, err := bind(entries, s.entryColumns(), nil, []string{"account", "counter_account", "currency"})
	if err = errors.Join(err, s.checkSources()); err != nil {
		return nil, err
	}
	account, err := ledgerAccount(accounts)
	if err != nil {
		return nil, err
	}
	plan := &ledgerPlan[T]{entry: newRowEncoder(columns), account: account, nonNegative: s.NonNegative}
	err = errors.Join(needed(entries, columns), plan.checkTypes(accounts, entries))
	if err != nil {
		return nil, err
	}
	if plan.overdraft, err = plan.accountCells(s.Overdraft); err != nil {
		return nil, err
	}
	var entry []*target
	for i := range plan.entry.targets {
		entry = append(entry, &plan.entry.targets[i])
	}
	plan.open, plan.lock = openSQL(accounts, account[:2]), balancesSQL(accounts, account[:2])
	plan.settle, plan.append = updateSQL(accounts, account, ""), entriesSQL(entries, entry)
	plan.memory.New = func() any { return newLedgerMemory(len(columns)) }
	return plan, nil
}

func (s *Ledger[T]) checkSources() error {
	var faults []error
	for _, c := range []struct {
		name string
		has  bool
	}{{"From", s.From.Value != nil}, {"To", s.To.Value != nil}, {"Amount", s.Amount.Value != nil}, {"Currency", s.Currency.Value != nil}} {
		if !c.has {
			faults = append(faults, fmt.Errorf("no %s: make it with Field, Col or Const", c.name))
		}
	}
	return errors.Join(faults...)
}

// entryColumns are the columns of an entry, those of the transfer first.
func (s *Ledger[T]) entryColumns() []Column[T] {
	missing := func(*schema.Message[T]) (schema.Value, error) { return schema.Value{}, nil }
	columns := []Column[T]{ledgerFrom: s.From, ledgerTo: s.To, ledgerCurrency: s.Currency, ledgerAmount: s.Amount}
	for i, name := range []string{"account", "counter_account", "currency", "amount"} {
		columns[i].Name = name
		if columns[i].Value == nil {
			columns[i].Value = missing // checkSources says so
		}
	}
	columns = append(columns, Column[T]{Name: "message_key", Field: "the idempotency key", Value: func(m *schema.Message[T]) (schema.Value, error) {
		return textValue([]byte(m.ID.String())), nil
	}})
	for _, c := range [][2]string{{"topic", "$topic"}, {"partition", "$partition"}, {"record_offset", "$offset"}, {"record_time", "$time"}} {
		value := pseudoField(c[1])
		columns = append(columns, Column[T]{Name: c[0], Field: c[1], OfRecord: true, Value: func(m *schema.Message[T]) (schema.Value, error) {
			return value(m.Record), nil
		}})
	}
	return columns
}

// ledgerAccount finds the columns of the accounts' table.
func ledgerAccount(t *Table) ([]*target, error) {
	var out []*target
	var faults []error
	for _, name := range []string{"account", "currency", "balance"} {
		c, err := t.writable(name)
		if err == nil && !c.NotNull {
			err = fmt.Errorf("column %q of table %s may be null: make it not null", name, t.Name)
		}
		faults = append(faults, err)
		column := newTarget(c, name != "balance")
		out = append(out, &column)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	balance := []bound[any]{{target: *out[2]}}
	err := summable(balance)
	out[2].carrier = balance[0].carrier
	given := []bound[any]{{target: *out[0]}, {target: *out[1]}, {target: *out[2]}}
	for i := range given {
		given[i].Column.Name = out[i].Name
	}
	return out, errors.Join(err, t.Unique("account", "currency"), needed(t, given))
}
