package tables

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// multiset compares rows that have no key by how often each occurs. Columns that
// are lenient are left out: no row could be told from one that differs in them.
func (c *comparison) multiset(ctx context.Context, tx pgx.Tx) (Difference, error) {
	c.others = slices.DeleteFunc(c.others, c.isLenient)
	d := Difference{Left: c.left, Right: c.right}
	err := tx.QueryRow(ctx, `select coalesce(sum(l.n), 0)::bigint, coalesce(sum(r.n), 0)::bigint,
	coalesce(sum(greatest(coalesce(l.n, 0) - coalesce(r.n, 0), 0)), 0)::bigint,
	coalesce(sum(greatest(coalesce(r.n, 0) - coalesce(l.n, 0), 0)), 0)::bigint`+c.countsJoinSQL()).
		Scan(&d.LeftRows, &d.RightRows, &d.Missing, &d.Extra)
	if err != nil || d.None() || c.opts.Limit < 0 {
		return d, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select coalesce(l.texts, r.texts), coalesce(l.n, 0) > coalesce(r.n, 0)%s
where l.n is distinct from r.n order by 1 limit %d`, c.countsJoinSQL(), c.opts.Limit))
	if err != nil {
		return d, err
	}
	d.Examples, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e RowDifference, err error) {
		var texts []*string
		var missing bool
		if err := row.Scan(&texts, &missing); err != nil {
			return e, err
		}
		e.Kind, e.Key = KindExtra, values(c.others, texts)
		if missing {
			e.Kind = KindMissing
		}
		return e, nil
	})
	return d, err
}

// countsJoinSQL pairs equal rows of both sides with how often each has them. In
// an array null equals null.
func (c *comparison) countsJoinSQL() string {
	side := func(table Name) string {
		return fmt.Sprintf("(select %s as texts, count(*) as n from %s t group by 1)", textsOf("t", c.others), table)
	}
	return fmt.Sprintf("\nfrom %s l full join %s r on l.texts = r.texts", side(c.left), side(c.right))
}
