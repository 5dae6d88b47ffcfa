package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/uuid"

	"github.com/oncestream/oncestream/schema"
)

// tally counts records the way an auditor would: it reads their bytes, knows
// nothing of how they were made, and adds up outside of SQL.
type tally struct {
	decode   schema.Decoder[schema.Row]
	exact    *apd.Context
	seen     map[[16]byte]struct{}
	sent     int64
	distinct int64
	sum      apd.Decimal // of the distinct payments
}

func newTally() *tally {
	// A digit that is lost or rounded is an error.
	exact := apd.BaseContext.WithPrecision(100)
	exact.Traps |= apd.Inexact | apd.Rounded
	return &tally{
		decode: schema.Rows(schema.NewFields("event_id", "amount")),
		exact:  exact,
		seen:   map[[16]byte]struct{}{},
	}
}

func (t *tally) add(ctx context.Context, records []schema.Record) error {
	for i := range records {
		if err := t.addOne(ctx, &records[i]); err != nil {
			return fmt.Errorf("tally: %w", err)
		}
	}
	return nil
}

func (t *tally) addOne(ctx context.Context, r *schema.Record) error {
	row, err := t.decode(ctx, r)
	if err != nil {
		return err
	}
	id, err := uuid.ParseBytes(row.Get("event_id").Raw)
	if err != nil {
		return err
	}
	t.sent++
	if _, again := t.seen[id]; again {
		return nil
	}
	t.seen[id] = struct{}{}
	t.distinct++
	amount, _, err := t.exact.NewFromString(string(row.Get("amount").Raw))
	if err != nil {
		return err
	}
	_, err = t.exact.Add(&t.sum, &t.sum, amount)
	return err
}

// thousands writes a number with its thousands apart.
func thousands[N int | int64](n N) string {
	digits := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}
