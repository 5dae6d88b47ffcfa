//go:build broker

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// audit is what must be in the tables, computed from the records' bytes in
// whole cents and without any of the code under test.
type audit struct {
	seen      map[string]struct{}
	customers map[int64]balance

	sent, distinct, cents int64
}

type balance struct{ cents, payments int64 }

func newAudit() *audit {
	return &audit{seen: map[string]struct{}{}, customers: map[int64]balance{}}
}

// add takes all records of a generator.
func (a *audit) add(tb testing.TB, p payments) {
	tb.Helper()
	for batch := p.next(10_000); len(batch) > 0; batch = p.next(10_000) {
		for i := range batch {
			a.addOne(tb, batch[i].Value)
		}
	}
}

func (a *audit) addOne(tb testing.TB, value []byte) {
	tb.Helper()
	var payment struct {
		ID       string      `json:"event_id"`
		Customer int64       `json:"customer_id"`
		Amount   json.Number `json:"amount"`
	}
	must(tb, json.Unmarshal(value, &payment))
	a.sent++
	if _, again := a.seen[payment.ID]; again {
		return
	}
	a.seen[payment.ID] = struct{}{}
	whole, fraction, _ := strings.Cut(payment.Amount.String(), ".")
	cents, err := strconv.ParseInt(whole+fraction, 10, 64)
	must(tb, err)
	if len(fraction) != 2 {
		tb.Fatalf("the amount %s is not in cents", payment.Amount)
	}
	b := a.customers[payment.Customer]
	a.customers[payment.Customer] = balance{b.cents + cents, b.payments + 1}
	a.distinct++
	a.cents += cents
}

// euros writes cents as an amount with two decimals.
func euros(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// verify compares everything that the group has left behind with the audit: the
// tables of the effects, the status, and what a replay finds.
func (j *job) verify() {
	j.tb.Helper()
	j.verifyTables()
	j.verifyStatus()
	if out, code := j.call("replay", j.file); code != 0 || !strings.Contains(out, fmt.Sprintf("replayed %d records", j.audit.sent)) || !strings.Contains(out, "nothing new") {
		j.tb.Errorf("the replay ends with exit code %d and says\n%s", code, out)
	}
}

func (j *job) verifyTables() {
	j.tb.Helper()
	want := fmt.Sprintf("%d of %d, %s", j.audit.distinct, j.audit.distinct, euros(j.audit.cents))
	if got := j.db.Value(`select count(*) || ' of ' || count(distinct event_id) || ', ' || sum(amount) from payments`); got != want {
		j.tb.Errorf("payments stored: %s, want %s", got, want)
	}
	if got := j.db.Value(`select sum(payments) || ' of ' || sum(payments) || ', ' || sum(total) from customer_totals`); got != want {
		j.tb.Errorf("payments in customer_totals: %s, want %s", got, want)
	}
	wrong := 0
	rows := j.db.Rows(`select customer_id, total, payments from customer_totals`)
	for _, row := range rows {
		customer, err := strconv.ParseInt(row[0], 10, 64)
		must(j.tb, err)
		if b := j.audit.customers[customer]; row[1] != euros(b.cents) || row[2] != strconv.FormatInt(b.payments, 10) {
			wrong++
		}
	}
	if wrong > 0 || len(rows) != len(j.audit.customers) {
		j.tb.Errorf("%d of %d customers have a wrong balance; there are %d", wrong, len(rows), len(j.audit.customers))
	}
}

func (j *job) verifyStatus() {
	j.tb.Helper()
	s := j.status()
	duplicates := s.Total.DuplicatesProducer + s.Total.DuplicatesRedelivery
	if s.Total.Lag != 0 || s.Total.Processed != j.audit.sent || duplicates != j.audit.sent-j.audit.distinct {
		j.tb.Errorf("status: lag %d, %d processed, %d duplicates; want lag 0, %d processed, %d duplicates",
			s.Total.Lag, s.Total.Processed, duplicates, j.audit.sent, j.audit.sent-j.audit.distinct)
	}
}

// status asks the program how far it is.
func (j *job) status() (s status) {
	j.tb.Helper()
	out, code := j.call("status", j.file, "--json")
	if code != 0 {
		j.tb.Fatalf("status ends with exit code %d", code)
	}
	must(j.tb, json.Unmarshal([]byte(out), &s))
	return s
}
