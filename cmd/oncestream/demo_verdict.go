package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/cockroachdb/apd/v3"
	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// verdict compares what was sent with what the database holds.
type verdict struct {
	tally  *tally
	totals status

	stored, storedDistinct, counted int64
	balances                        apd.Decimal

	before, after demoDigests
	replay        processor.Report
}

// readTables reads what the effects have left.
func (v *verdict) readTables(ctx context.Context, conn *pgx.Conn) error {
	var balances string
	err := conn.QueryRow(ctx, `
		select (select count(*) from payments), (select count(distinct event_id) from payments),
			coalesce(sum(payments), 0)::bigint, coalesce(sum(total), 0)::text
		from customer_totals`).Scan(&v.stored, &v.storedDistinct, &v.counted, &balances)
	if err != nil {
		return fmt.Errorf("read the tables of the demo: %w", err)
	}
	_, _, err = v.balances.SetString(balances)
	return err
}

// demoDigests are the digests of the demo's tables.
type demoDigests struct{ payments, totals tables.TableDigest }

// readDigests takes both as of one moment.
func readDigests(ctx context.Context, conn *pgx.Conn) (d demoDigests, err error) {
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) (err error) {
		if d.payments, err = tables.Digest(ctx, tx, tables.Name{Table: "payments"}, tables.DigestOptions{}); err != nil {
			return err
		}
		d.totals, err = tables.Digest(ctx, tx, tables.Name{Table: "customer_totals"}, tables.DigestOptions{})
		return err
	})
	return d, err
}

// finding is one line of the verdict.
type finding struct {
	what, value string
	// check says what must hold; it is empty for a line that only informs.
	check string
	holds bool
}

func (v *verdict) findings() []finding {
	t := v.totals.Total
	return []finding{
		{what: "payments sent", value: thousands(v.tally.sent)},
		{what: "  distinct", value: thousands(v.tally.distinct)},
		{what: "  stored", value: thousands(v.stored), check: "each distinct payment once", holds: v.stored == v.tally.distinct && v.storedDistinct == v.tally.distinct},
		{what: "duplicates found", value: thousands(t.DuplicatesProducer + t.DuplicatesRedelivery), check: "as many as were sent twice", holds: t.DuplicatesProducer+t.DuplicatesRedelivery == v.tally.sent-v.tally.distinct},
		{what: "  sent again by the producer", value: thousands(t.DuplicatesProducer)},
		{what: "  delivered again by the broker", value: thousands(t.DuplicatesRedelivery)},
		{what: "sum of the payments sent", value: v.tally.sum.Text('f')},
		{what: "sum of the balances", value: v.balances.Text('f'), check: "equal to the last cent", holds: v.balances.Cmp(&v.tally.sum) == 0},
		{what: "payments in the balances", value: thousands(v.counted), check: "each distinct payment once", holds: v.counted == v.tally.distinct},
		{what: "replay of the whole topic", value: thousands(v.replay.Records) + " records", check: "each one known, nothing new", holds: v.replay.Clean() && v.replay.Records == v.tally.sent && v.replay.Duplicates == v.tally.sent},
		{what: "payments before the replay", value: v.before.payments.String()},
		{what: "payments after the replay", value: v.after.payments.String(), check: "the same", holds: v.before.payments == v.after.payments},
		{what: "customer_totals before the replay", value: v.before.totals.String()},
		{what: "customer_totals after the replay", value: v.after.totals.String(), check: "the same", holds: v.before.totals == v.after.totals},
	}
}

// write prints the findings and reports whether all checks hold.
func (v *verdict) write(out io.Writer) (holds bool, err error) {
	var aligned bytes.Buffer
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	holds = true
	for _, f := range v.findings() {
		mark := ""
		switch {
		case f.check == "":
		case f.holds:
			mark = "ok: " + f.check
		default:
			mark = "WRONG: should be " + f.check
			holds = false
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.what, f.value, mark)
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	for line := range strings.Lines(aligned.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	return holds, nil
}
