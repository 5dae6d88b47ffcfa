package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

// letterList is one call of list.
type letterList struct {
	filter offsets.DeadLetterFilter
	by     string
	json   bool
}

func (a *app) letterListCommand() *cobra.Command {
	var l letterList
	f := &letterFlags{states: true, limit: 1000}
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "List dead letters",
		Long: `list shows a line for each dead letter that waits for a decision, or that the
flags select, in the order of their positions: where it is in the topic, why it was
set aside, how old the decision is, and how large the payload. Those that are parked
hold up the later records of their record key. The last line counts all that are
selected by their reasons; --by shows nothing but such counts.

It is read a page at a time, also where there are millions. What is set aside while
it runs is not listed; what is decided before its page is read is no longer waiting.`,
		Example: `  oncestream dead-letters list payments.yaml
  oncestream dead-letters list payments.yaml --reason value_range,not_null --since 24h
  oncestream dead-letters list payments.yaml --by column
  oncestream dead-letters list payments.yaml --state discarded --json | jq .resolution`,
	}
	cmd.Flags().StringVar(&l.by, "by", "", "count instead of listing: by "+listed(groupings()))
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON object a line, as export does without payloads")
	return a.letterCommand(cmd, f, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, _ string) error {
		switch {
		case l.by != "" && !slices.Contains(groupings(), l.by):
			return usagef("--by: must be %s (got %q)", listed(groupings()), l.by)
		case l.by != "" && cmd.Flags().Changed("limit"):
			return usagef("--limit goes with a list, and --by counts all that are selected")
		}
		l.filter = filter
		return withLetters(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger, now time.Time) error {
			if l.by != "" {
				return l.count(ctx, a.stdout, conn, ledger, now)
			}
			return l.list(ctx, a.stdout, conn, ledger, now)
		})
	})
}

// groupings are the choices of --by.
func groupings() []string {
	var names []string
	for _, g := range []offsets.Grouping{offsets.GroupByReason, offsets.GroupByColumn, offsets.GroupByConstraint, offsets.GroupByPartition} {
		names = append(names, string(g))
	}
	return names
}

// listed writes choices as a sentence names them.
func listed(choices []string) string {
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// list writes the lines, and what they come to: the counts are those of the
// start.
func (l *letterList) list(ctx context.Context, out io.Writer, conn *pgx.Conn, ledger *offsets.Ledger, now time.Time) error {
	l.filter.WithoutValues = true
	letters := ledger.DeadLetters(ctx, conn, l.filter)
	if l.json {
		return exportLetters(out, letters, false, nil)
	}
	counts, err := ledger.CountDeadLetters(ctx, conn, l.filter, offsets.GroupByReason)
	if err != nil {
		return err
	}
	table := newLetterTable(out, now)
	for d, err := range letters {
		if err == nil {
			err = table.add(d)
		}
		if err != nil {
			return err
		}
	}
	if err := table.flush(); err != nil {
		return err
	}
	if all := total(counts); int64(table.lines) == int64(l.filter.Limit) && int64(table.lines) < all {
		fmt.Fprintf(out, "%s of %s are shown: --limit shows more\n", thousands(table.lines), countLetters(all))
	}
	_, err = fmt.Fprintln(out, reasonsText(counts))
	return err
}

// count writes the counts that --by asks for.
func (l *letterList) count(ctx context.Context, out io.Writer, conn *pgx.Conn, ledger *offsets.Ledger, now time.Time) error {
	counts, err := ledger.CountDeadLetters(ctx, conn, l.filter, offsets.Grouping(l.by))
	if err != nil {
		return err
	}
	if l.json {
		return writeCountsJSON(out, l.by, counts)
	}
	if len(counts) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "%s\tCOUNT\tOLDEST\tNEWEST\n", strings.ToUpper(l.by))
		for _, n := range counts {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", orDash(n.Name), n.Count, ageText(now.Sub(n.Oldest)), ageText(now.Sub(n.Newest)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, countLetters(total(counts)))
	return err
}

func total(counts []offsets.DeadLetterCount) (n int64) {
	for _, c := range counts {
		n += c.Count
	}
	return n
}

// reasonsText sums up, as in "3 dead letters: 2 check, 1 decode".
func reasonsText(counts []offsets.DeadLetterCount) string {
	var parts []string
	for _, c := range counts {
		parts = append(parts, fmt.Sprintf("%s %s", thousands(c.Count), c.Name))
	}
	text := countLetters(total(counts))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// letterTable writes dead letters as lines. They are aligned some hundred at a
// time: the widths of all would be known only when all are in memory.
type letterTable struct {
	w     *tabwriter.Writer
	now   time.Time
	lines int
}

// alignedLines is how many lines are aligned with each other.
const alignedLines = 500

func newLetterTable(out io.Writer, now time.Time) *letterTable {
	return &letterTable{w: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), now: now}
}

func (t *letterTable) add(d *offsets.StoredDeadLetter) error {
	if t.lines == 0 {
		fmt.Fprintln(t.w, "ID\tPOSITION\tREASON\tSQLSTATE\tCOLUMN\tCONSTRAINT\tAGE\tSIZE\tSTATE")
	}
	fmt.Fprintf(t.w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, d.Record.Position(), d.Reason, orDash(d.SQLState),
		orDash(d.Column), orDash(d.Constraint), ageText(t.now.Sub(d.CreatedAt)), sizeText(d.ValueSize), stateText(d))
	if t.lines++; t.lines%alignedLines != 0 {
		return nil
	}
	return t.flush()
}

func (t *letterTable) flush() error { return t.w.Flush() }
