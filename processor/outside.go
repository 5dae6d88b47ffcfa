package processor

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables"
)

// codeOutside is the code of the halt at a transaction that writes where it must
// not.
const codeOutside = "outside"

// allConstraints runs what is deferred to COMMIT, when nobody could look any
// more.
const allConstraints = "set constraints all immediate"

// onlyIn returns a guard for the transactions of a run beside the live tables,
// which refuses one that has written to another schema than those given. what
// names the run in the error, remedy is what to do about it.
func onlyIn(what, remedy string, schemas ...string) func(ctx context.Context, tx pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, allConstraints); err != nil {
			return err
		}
		written, err := tables.Written(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range written {
			if !slices.Contains(schemas, name.Schema) {
				return &haltError{code: codeOutside, err: fmt.Errorf("processor: %s: the pipeline writes to %s, which is no copy; it was rolled back: %s", what, name, remedy)}
			}
		}
		return nil
	}
}

// outsideRemedy is what helps where a pipeline writes to what is no copy.
const outsideRemedy = "name tables without their schema, and where a trigger or a function writes to it, have it copied with the others (--tables)"
