package tables

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Freeze copies the rows of tables into the scratch schema into, which it
// creates, as the transaction sees them. The copies have the columns and nothing
// else. In a transaction that is repeatable read they are of one moment, and stay
// so while the tables go on to change.
func Freeze(ctx context.Context, tx pgx.Tx, into string, list []Name) error {
	if err := createScratch(ctx, tx, into); err != nil {
		return fmt.Errorf("tables: freeze: %w", err)
	}
	for _, table := range list {
		to := Name{into, table.Table}
		if _, err := tx.Exec(ctx, fmt.Sprintf("create table %s as select * from %s", to, table)); err != nil {
			return fmt.Errorf("tables: freeze %s: %w", table, err)
		}
	}
	return nil
}
