package sinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// ledgerMemory is the memory that one Apply uses.
type ledgerMemory struct {
	accounts  *fold // by account and currency
	arena     []byte
	key       []byte
	cells     cells
	transfers []transfer
	balances  []balance // by the place of the account
	entries   arrays
	rows      arrays // account, currency, balance
}

// transfer is what a message says.
type transfer struct {
	from, to int // places of accounts
	place    int // of the message
	literal  []byte
	amount   decimal
}

// balance is that of an account in a currency.
type balance struct {
	amount
	overdraft bool // it may be below zero
}

func newLedgerMemory(columns int) *ledgerMemory {
	m := &ledgerMemory{accounts: newFold(), cells: make(cells, columns)}
	for range columns {
		m.entries = append(m.entries, &array{})
	}
	for range 3 {
		m.rows = append(m.rows, &array{})
	}
	return m
}

func (p *ledgerPlan[T]) reset(m *ledgerMemory) {
	m.accounts.reset()
	clear(m.transfers)
	clear(m.balances)
	m.arena, m.transfers, m.balances = m.arena[:0], m.transfers[:0], m.balances[:0]
	for i := range m.entries {
		m.entries[i].reset(p.entry.targets[i].carrier)
	}
}

// Apply implements [Sink].
func (s *Ledger[T]) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[T]) error {
	plan := s.plan.Load()
	switch {
	case plan == nil:
		return fmt.Errorf("sinks: %s: %w", s.what(), errNotPrepared)
	case len(batch) == 0:
		return nil
	}
	m := plan.memory.Get().(*ledgerMemory)
	defer plan.memory.Put(m)
	plan.reset(m)
	err := gather(batch, func(place int, msg *schema.Message[T]) error { return plan.read(m, place, msg) })
	if err == nil {
		err = plan.write(ctx, tx, m, batch)
	}
	if err != nil {
		return fmt.Errorf("sinks: %s: %w", s.what(), err)
	}
	return nil
}

// read notes the transfer of a message.
func (p *ledgerPlan[T]) read(m *ledgerMemory, place int, msg *schema.Message[T]) error {
	if msg.Tombstone() {
		return schema.Faultf(msg.Record, schema.ReasonTombstone, "a tombstone has no amount to transfer")
	}
	t := transfer{place: place}
	for i := range p.entry.columns {
		if err := p.readColumn(m, &t, i, msg); err != nil {
			return err
		}
	}
	t.from, t.to = p.place(m, ledgerFrom), p.place(m, ledgerTo)
	if t.from == t.to {
		return p.fault(msg.Record, ledgerTo, "the transfer is from the account to itself")
	}
	for i, cell := range m.cells {
		m.entries[i].append(cell)
	}
	m.transfers = append(m.transfers, t)
	return nil
}

// readColumn encodes one column, and takes the amount also as a number.
func (p *ledgerPlan[T]) readColumn(m *ledgerMemory, t *transfer, i int, msg *schema.Message[T]) error {
	c := &p.entry.columns[i]
	v, err := c.Value(msg)
	if err != nil {
		return blame(err, msg.Record, c.Field, c.Name)
	}
	switch v.Kind {
	case schema.Missing:
		return absent(msg.Record, c.Field, c.Name, "missing")
	case schema.Null:
		return absent(msg.Record, c.Field, c.Name, "null")
	default:
	}
	start := len(m.arena)
	if m.arena, err = p.entry.value(m.arena, i, msg.Record, v); err != nil {
		return err
	}
	m.cells[i] = m.arena[start:len(m.arena):len(m.arena)]
	if i != ledgerAmount {
		return nil
	}
	if v.Kind == schema.Bytes {
		v.Kind = schema.String
	}
	t.literal = v.Raw
	if t.amount, err = summand(&p.account[2].TableColumn, v); err != nil {
		return blame(err, msg.Record, c.Field, "balance")
	}
	if t.amount.neg || t.amount.zero {
		return p.fault(msg.Record, i, "the amount is not above zero")
	}
	return nil
}

func (p *ledgerPlan[T]) fault(r *schema.Record, i int, why string) *schema.Fault {
	f := schema.Faultf(r, schema.ReasonValueRange, "%s", why)
	f.Field, f.Column = p.entry.columns[i].Field, p.entry.columns[i].Name
	return f
}

// place returns the place of the account that is the i-th cell.
func (p *ledgerPlan[T]) place(m *ledgerMemory, i int) int {
	m.key = append(append(m.key[:0], m.cells[i]...), m.cells[ledgerCurrency]...)
	place, added := m.accounts.place(m.key)
	if added {
		m.balances = append(m.balances, balance{overdraft: !p.nonNegative || p.overdraft[string(m.cells[i])]})
	}
	return place
}

// write locks the balances, makes the transfers in memory and writes what came
// of them.
func (p *ledgerPlan[T]) write(ctx context.Context, tx pgx.Tx, m *ledgerMemory, batch []schema.Message[T]) error {
	order := m.accounts.sorted()
	for i := range m.rows {
		m.rows[i].reset(p.account[i].carrier)
	}
	for _, place := range order {
		appendKey(m.rows, m.accounts.keys[place])
	}
	if _, err := tx.Exec(ctx, p.open, m.rows[:2]); err != nil {
		return err
	}
	if err := p.readBalances(ctx, tx, m, order); err != nil {
		return err
	}
	if err := p.move(m, batch); err != nil {
		return err
	}
	for _, place := range order {
		cell, err := m.balances[place].appendElement(m.key[:0])
		if err != nil {
			return err
		}
		m.rows[2].append(cell)
		m.key = cell
	}
	changed, err := placesOf(ctx, tx, p.settle, m.rows)
	if err != nil {
		return err
	}
	if len(changed) != len(order) {
		return errAlias
	}
	tag, err := tx.Exec(ctx, p.append, m.entries)
	if err == nil && tag.RowsAffected() != int64(2*len(m.transfers)) {
		err = fmt.Errorf("%d entries were written for %d transfers: a trigger or a rule of the table keeps rows out", tag.RowsAffected(), len(m.transfers))
	}
	return err
}

var errAlias = errors.New("the accounts of the batch are not one row each: two ids are equal by the column's collation, or a policy hides rows")

// readBalances locks the accounts.
func (p *ledgerPlan[T]) readBalances(ctx context.Context, tx pgx.Tx, m *ledgerMemory, order []int) error {
	rows, err := tx.Query(ctx, p.lock, m.rows[:2])
	if err != nil {
		return err
	}
	var n int64
	var text string
	tag, err := pgx.ForEachRow(rows, []any{&n, &text}, func() error {
		d, ok := scanDecimal([]byte(text))
		if !ok {
			return fmt.Errorf("a balance is %s, with which no sum is exact", text)
		}
		m.balances[order[n-1]].add([]byte(text), &d)
		return nil
	})
	if err == nil && tag.RowsAffected() != int64(len(order)) {
		err = errAlias
	}
	return err
}
