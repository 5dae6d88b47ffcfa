package sinkstest

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
)

// trace records the statements of a pool. It is a pgx tracer, so it sees what
// the server is asked and by which connection.
type trace struct {
	mu   sync.Mutex
	seen []statement
}

// statement is one that was sent.
type statement struct {
	sql  string
	conn *pgx.Conn
	in   bool // a transaction was open on the connection
}

// TraceQueryStart implements [pgx.QueryTracer].
func (t *trace) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.add(statement{data.SQL, conn, conn.PgConn().TxStatus() != 'I'})
	return ctx
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (t *trace) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (t *trace) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (t *trace) TraceBatchQuery(_ context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	t.add(statement{data.SQL, conn, true})
}

// TraceBatchEnd implements [pgx.BatchTracer].
func (t *trace) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceCopyFromStart implements [pgx.CopyFromTracer].
func (t *trace) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	t.add(statement{"copy " + data.TableName.Sanitize(), conn, conn.PgConn().TxStatus() != 'I'})
	return ctx
}

// TraceCopyFromEnd implements [pgx.CopyFromTracer].
func (t *trace) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

func (t *trace) add(s statement) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, s)
}

// during returns the statements that were sent while f ran.
func (t *trace) during(f func() error) ([]statement, error) {
	t.mu.Lock()
	t.seen = nil
	t.mu.Unlock()
	err := f()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen, err
}

// outside fails where a statement was not sent within the transaction of conn.
func outside(seen []statement, conn *pgx.Conn) error {
	for _, s := range seen {
		if s.conn != conn || !s.in {
			return fmt.Errorf("a statement outside of the transaction:\n%s", indent(s.sql))
		}
	}
	return nil
}
