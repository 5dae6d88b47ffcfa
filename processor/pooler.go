package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// idleSetting is the setting without which a process that was stopped within a
// transaction would hold its partition for ever.
const idleSetting = "idle_in_transaction_session_timeout"

// The errors of a pooler that is set up in a way that cannot work.
var (
	errPoolerIdle = errors.New("config: postgres.url: a pooler stands before the database, and its sessions have no " + idleSetting +
		": have it set where the pooler connects (connect_query of PgBouncer), or by alter role")
	errPoolerStatements = errors.New("config: postgres.url: a pooler stands before the database and does not keep the prepared statements of its " +
		"clients apart: add default_query_exec_mode=cache_describe to the URL, or set max_prepared_statements (PgBouncer 1.21 and newer)")
)

// prepareSession gives a new session its settings. They are not sent with the
// connection's start, since a pooler refuses those it does not know.
//
// A pooler in transaction mode hands out its sessions anew for each transaction,
// so a setting would reach a stranger: there it is checked that the session has
// what it must, and that statements may be prepared the way they will be. It is
// known by the number of the process that answers, which is not the one that was
// told at the start.
func prepareSession(ctx context.Context, conn *pgx.Conn, settings map[string]string) error {
	answer, err := ask(ctx, conn, "select pg_backend_pid(), current_setting('"+idleSetting+"')")
	switch {
	case err != nil:
		return err
	case answer[0] == strconv.FormatUint(uint64(conn.PgConn().PID()), 10):
		return set(ctx, conn, settings)
	case answer[1] == "0":
		return errPoolerIdle
	case conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement:
		return nil
	}
	return checkPrepared(ctx, conn)
}

// set changes the session's settings.
func set(ctx context.Context, conn *pgx.Conn, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	var calls []string
	var values [][]byte
	for i, name := range slices.Sorted(maps.Keys(settings)) {
		calls = append(calls, fmt.Sprintf("set_config('%s', $%d, false)", name, i+1))
		values = append(values, []byte(settings[name]))
	}
	_, err := ask(ctx, conn, "select "+strings.Join(calls, ", "), values...)
	return err
}

// checkPrepared looks under which name the server knows a statement. A pooler
// that keeps its clients' statements apart gives them names of its own.
func checkPrepared(ctx context.Context, conn *pgx.Conn) error {
	const name = "oncestream_probe"
	if _, err := ask(ctx, conn, "begin"); err != nil {
		return err
	}
	var sqlState *pgconn.PgError
	_, err := conn.PgConn().Prepare(ctx, name, "select 1", nil)
	if errors.As(err, &sqlState) && sqlState.Code == "42P05" {
		return errPoolerStatements // another client has prepared it: there is no need to look
	}
	if err != nil {
		return err
	}
	found, err := ask(ctx, conn, "select count(*) from pg_prepared_statements where name = '"+name+"'")
	if err != nil {
		return err
	}
	if err := conn.PgConn().Deallocate(ctx, name); err != nil {
		return err
	}
	if _, err := ask(ctx, conn, "rollback"); err != nil {
		return err
	}
	if found[0] != "0" {
		return errPoolerStatements
	}
	return nil
}

// ask returns the first row of a statement that is not prepared by name, since
// it is asked before it is known whether that works.
func ask(ctx context.Context, conn *pgx.Conn, sql string, args ...[]byte) ([]string, error) {
	result := conn.PgConn().ExecParams(ctx, sql, args, nil, nil, nil).Read()
	if result.Err != nil || len(result.Rows) == 0 {
		return nil, result.Err
	}
	row := make([]string, len(result.Rows[0]))
	for i, value := range result.Rows[0] {
		row[i] = string(value)
	}
	return row, nil
}
