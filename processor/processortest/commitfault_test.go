package processortest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Each fault strikes the chosen COMMIT once, leaves the client with an error
// that is no answer of the server, and leaves in the table what it says.
func TestCommitFaults(t *testing.T) {
	t.Parallel()
	for fault, committed := range map[processortest.CommitFault]bool{
		processortest.CutBefore:  false,
		processortest.CutInside:  false,
		processortest.CutAfter:   true,
		processortest.HoldAnswer: true,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			faults := processortest.AtCommit(2, fault, time.Hour)
			db := faultyDB(t, faults)
			if err := insert(t, db, "first"); err != nil {
				t.Fatalf("the first commit: %v", err)
			}
			err := insert(t, db, "second")
			if pgErr, ok := errors.AsType[*pgconn.PgError](err); err == nil || ok {
				t.Fatalf("the second commit: %v (%v), want an error that tells nothing", err, pgErr)
			}
			// The lock waits for the server to have done with the lost connection.
			db.Exec("do $$ begin lock table t in access exclusive mode; end $$")
			want := "first"
			if committed {
				want = "first,second"
			}
			if got := db.Value("select string_agg(v, ',' order by v) from t"); got != want {
				t.Errorf("the table holds %s, want %s", got, want)
			}
			if n := faults.Struck()[fault]; n != 1 || faults.Commits() != 2 {
				t.Errorf("struck %d times in %d commits, want once in 2", n, faults.Commits())
			}
		})
	}
}

// A COMMIT that is prepared, or sent along with other statements in one write,
// is found too; the answers before it do not count as its answer.
func TestCommitFaultExtendedProtocol(t *testing.T) {
	faults := processortest.AtCommit(1, processortest.CutAfter, 0)
	db := faultyDB(t, faults)
	var batch pgx.Batch
	batch.Queue("begin")
	batch.Queue("insert into t select repeat('x', 1000) || n from generate_series(1, $1) n returning v", 100)
	batch.Queue("commit")
	if err := db.Pool.SendBatch(t.Context(), &batch).Close(); err == nil {
		t.Fatal("the batch succeeded although its answer was cut")
	}
	if got := db.Value("select count(*) from t"); got != "100" {
		t.Errorf("the table holds %s rows, want 100", got)
	}
	if n := faults.Struck()[processortest.CutAfter]; n != 1 {
		t.Errorf("struck %d times, want once", n)
	}
}

// An answer that is held for less than the client's patience arrives whole.
func TestHoldAnswerWithinPatience(t *testing.T) {
	faults := processortest.AtCommit(1, processortest.HoldAnswer, 50*time.Millisecond)
	db := faultyDB(t, faults)
	start := time.Now()
	if err := insert(t, db, "v"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("the answer came after %v, before it was let go", took)
	}
}

func faultyDB(t *testing.T, faults *processortest.CommitFaults, opts ...tablestest.Option) *tablestest.DB {
	t.Helper()
	db := tablestest.New(t, append(opts, tablestest.Configure(func(c *pgxpool.Config) {
		faults.Install(&c.ConnConfig.Config)
	}))...)
	db.Exec("create table t (v text)")
	return db
}

// insert commits one row, with the patience of a second for the commit.
func insert(t *testing.T, db *tablestest.DB, v string) error {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "insert into t values ($1)", v); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return tx.Commit(ctx)
}
