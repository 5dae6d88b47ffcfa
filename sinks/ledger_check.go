package sinks

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// checkTypes refuses tables whose columns do not agree: an account must be the
// same value in both, and an amount as exact as a balance.
func (p *ledgerPlan[T]) checkTypes(accounts, entries *Table) error {
	var faults []error
	account, currency := p.account[0], p.account[1]
	for _, t := range []*target{account, currency} {
		if t.cast() != "" && t.BaseOID != pgtype.BPCharOID && !t.Enum {
			faults = append(faults, fmt.Errorf("column %q of table %s is a %s, which PostgreSQL alone can compare: use an integer type, uuid or text", t.Name, accounts.Name, t.Type))
		}
	}
	for place, t := range map[int]*target{ledgerFrom: account, ledgerTo: account, ledgerCurrency: currency} {
		if c := &p.entry.targets[place]; c.Type != t.Type {
			faults = append(faults, fmt.Errorf("column %q of table %s is a %s and column %q of table %s a %s: they must be of one type",
				c.Name, entries.Name, c.Type, t.Name, accounts.Name, t.Type))
		}
	}
	faults = append(faults, summable([]bound[any]{{target: p.entry.targets[ledgerAmount]}}))
	return errors.Join(faults...)
}

// accountCells encodes the names of accounts.
func (p *ledgerPlan[T]) accountCells(names []string) (map[string]bool, error) {
	cells := make(map[string]bool, len(names))
	for _, name := range names {
		cell, err := p.account[0].element(nil, schema.Value{Kind: schema.String, Raw: []byte(name)})
		if err != nil {
			return nil, fmt.Errorf("overdraft: %w", err)
		}
		cells[string(cell)] = true
	}
	return cells, nil
}
