package offsets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// What a vacuum must keep is decided by the oldest transaction id that somebody
// may still look for: a session's own id or the oldest one its snapshot sees, a
// prepared transaction, a standby or its replication slot. Everybody may see
// these ids; since when a session is in its transaction, and what it does, is
// shown to its own role and to members of pg_read_all_stats only. Of those that
// hold back the same id, the one whose own id it is comes first: the others hold
// it back because of that one.
const sqlOldestTransaction = `
select kind, pid, coalesce(name, ''), coalesce(usename, ''), coalesce(application, ''), coalesce(state, ''),
  started, coalesce(extract(epoch from clock_timestamp() - started), 0)::float8, held,
  coalesce(pg_stat_get_dead_tuples('$consumer_offset'::regclass), 0)
from (
  select 'session' as kind, pid, null as name, usename, application_name as application, state, xact_start as started,
    greatest(age(backend_xid), age(backend_xmin)) as held, age(backend_xid) as own
  from pg_stat_activity
  where pid <> pg_backend_pid() and (backend_xid is not null or backend_xmin is not null)
    and (datname = current_database() or datname is null) and backend_type is distinct from 'autovacuum worker'
  union all
  select 'prepared transaction', 0, gid, owner, null, null, prepared, age(transaction), age(transaction)
  from pg_prepared_xacts where database = current_database()
  union all
  select 'replication slot', coalesce(active_pid, 0), slot_name, null, null, case when active then 'active' else 'inactive' end, null, age(xmin), null
  from pg_replication_slots where xmin is not null
) as t
order by held desc, own desc nulls last, started nulls last
limit 1`

// Transaction is what keeps a vacuum from removing dead rows: the oldest that
// somebody may still look for.
type Transaction struct {
	// Kind is "session", "prepared transaction" or "replication slot".
	Kind string
	// PID is the backend's, 0 where there is none.
	PID int32
	// Name is that of the prepared transaction or of the slot.
	Name string
	// User, Application and State are those of the session, as far as our role is
	// shown them.
	User, Application, State string
	// Started is when it began, zero where our role is not shown that, or where
	// there is no such time. Age is how long ago that was, by the database's clock.
	Started time.Time
	Age     time.Duration
	// Held is how many transactions have begun since the one that it holds back.
	Held int64
	// DeadRows is how many dead rows the ledger's table of positions holds, as the
	// server's statistics count them: one for each batch since.
	DeadRows int64
}

// String names the transaction and who has it.
func (t Transaction) String() string {
	var b strings.Builder
	b.WriteString(t.Kind)
	if t.Name != "" {
		fmt.Fprintf(&b, " %q", t.Name)
	}
	if t.PID != 0 {
		fmt.Fprintf(&b, ", pid %d", t.PID)
	}
	for _, part := range [][2]string{{"user", t.User}, {"application", t.Application}, {"state", t.State}} {
		if part[1] != "" {
			fmt.Fprintf(&b, ", %s %q", part[0], part[1])
		}
	}
	if !t.Started.IsZero() {
		fmt.Fprintf(&b, ", since %s", t.Started.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// OldestTransaction returns what holds back the vacuum of the database for
// longest, and false where nothing does. What holds it back for a moment only,
// such as a batch that is being written, is found as well: it is the age that
// tells.
func (l *Ledger) OldestTransaction(ctx context.Context, db DB) (Transaction, bool, error) {
	var t Transaction
	var started *time.Time
	var seconds float64
	err := db.QueryRow(ctx, l.sql.oldestTransaction).Scan(&t.Kind, &t.PID, &t.Name, &t.User, &t.Application, &t.State, &started, &seconds, &t.Held, &t.DeadRows)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, false, nil
	}
	if started != nil {
		t.Started, t.Age = *started, time.Duration(seconds*float64(time.Second))
	}
	return t, err == nil, wrap("look for the oldest transaction", err)
}

// Now returns the time by the database's clock.
func (l *Ledger) Now(ctx context.Context, db DB) (time.Time, error) {
	var now time.Time
	err := db.QueryRow(ctx, "select clock_timestamp()").Scan(&now)
	return now, wrap("ask the database for the time", err)
}
