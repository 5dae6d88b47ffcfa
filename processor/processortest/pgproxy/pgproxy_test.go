package pgproxy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/oncestream/oncestream/processor/processortest/pgproxy"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

// behind returns a proxy before the test's own schema, with the table "t".
func behind(t *testing.T) (*pgproxy.Proxy, *tablestest.DB) {
	t.Helper()
	db := tablestest.New(t, tablestest.Unmigrated())
	db.Exec(`create table t (n int)`)
	proxy, err := pgproxy.Listen(db.URL)
	noErr(t, err)
	t.Cleanup(func() { noErr(t, proxy.Close()) })
	return proxy, db
}

func noErr(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func connect(t *testing.T, proxy *pgproxy.Proxy) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), proxy.URL())
	noErr(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// insert commits one row, in a transaction of its own.
func insert(t *testing.T, conn *pgx.Conn, n int) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "insert into t values ($1)", n)
		return err
	})
}

// once is a rule for the first message that matches.
func once(matches func(pgproxy.Message) bool, action pgproxy.Action) pgproxy.Rule {
	var done sync.Once
	return func(m pgproxy.Message) (a pgproxy.Action) {
		if matches(m) {
			done.Do(func() { a = action })
		}
		return a
	}
}

// Proves that a session behind the proxy is as one without it, whole and in
// slices of three bytes: prepared statements, COPY, large rows, errors, a
// cancelled statement.
func TestTransparent(t *testing.T) {
	for name, link := range map[string]pgproxy.Link{"whole": {}, "sliced": {Slice: 3, Latency: time.Microsecond}} {
		t.Run(name, func(t *testing.T) {
			proxy, db := behind(t)
			proxy.SetLink(link)
			conn := connect(t, proxy)
			for n := range 3 {
				noErr(t, insert(t, conn, n))
			}
			rows := [][]any{{10}, {11}, {12}}
			if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"t"}, []string{"n"}, pgx.CopyFromRows(rows)); err != nil {
				t.Fatal(err)
			}
			var large string
			noErr(t, conn.QueryRow(t.Context(), "select repeat('x', 20000)").Scan(&large))
			if len(large) != 20000 {
				t.Errorf("%d bytes arrived", len(large))
			}
			_, err := conn.Exec(t.Context(), "select 1/0")
			if server, ok := errors.AsType[*pgconn.PgError](err); !ok || server.Code != "22012" {
				t.Errorf("got %v, want the server's error", err)
			}
			noErr(t, conn.PgConn().CancelRequest(t.Context()))
			if got := db.Value("select count(*) || ' ' || sum(n) from t"); got != "6 36" {
				t.Errorf("the table has %s", got)
			}
		})
	}
}

// Proves each outcome of a COMMIT whose answer does not come: cut before and
// inside it is aborted, cut after it is committed, and held it is committed
// while its client has given up. The client learns nothing in any of them.
func TestCommit(t *testing.T) {
	for _, c := range []struct {
		name    string
		matches func(pgproxy.Message) bool
		action  pgproxy.Action
		rows    string
	}{
		{"before", pgproxy.Message.Commits, pgproxy.CutBefore, "0"},
		{"inside", pgproxy.Message.Commits, pgproxy.CutInside, "0"},
		{"answered", pgproxy.Message.Committed, pgproxy.CutBefore, "1"},
		{"answer cut", pgproxy.Message.Committed, pgproxy.CutInside, "1"},
		{"held", pgproxy.Message.Committed, pgproxy.Action{Hold: time.Hour}, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy, db := behind(t)
			conn := connect(t, proxy)
			struck := make(chan struct{})
			c.action.Do = func() { close(struck) }
			proxy.SetRule(once(c.matches, c.action))
			ctx, giveUp := context.WithCancel(t.Context())
			go func() {
				<-struck
				if c.action.Hold > 0 {
					giveUp()
				}
			}()
			defer giveUp()
			tx, err := conn.Begin(ctx)
			noErr(t, err)
			_, err = tx.Exec(ctx, "insert into t values (1)")
			noErr(t, err)
			err = tx.Commit(ctx)
			if _, told := errors.AsType[*pgconn.PgError](err); err == nil || told {
				t.Errorf("got %v, want an error that tells nothing", err)
			}
			<-struck
			// This waits for the lock of a server that has not noticed yet.
			db.Exec("alter table t add column gone int")
			if got := db.Value("select count(*) from t"); got != c.rows {
				t.Errorf("%s rows, want %s", got, c.rows)
			}
		})
	}
}

// Proves that a rule knows the text of a statement that was prepared before, and
// can put another one, another answer or whole messages in its place.
func TestRule(t *testing.T) {
	proxy, db := behind(t)
	var mu sync.Mutex
	seen := map[string]int{}
	proxy.SetRule(func(m pgproxy.Message) pgproxy.Action {
		mu.Lock()
		defer mu.Unlock()
		if m.ToServer && m.SQL != "" {
			seen[fmt.Sprintf("%c %s", m.Kind, m.SQL)]++
		}
		switch {
		case m.ToServer && m.Kind == 'P' && strings.Contains(m.SQL, "insert"):
			return pgproxy.Action{SQL: "insert into t values ($1::int + 100)"}
		case m.Tag == "DELETE 0":
			return pgproxy.Action{Tag: "DELETE 7"}
		}
		return pgproxy.Pass
	})
	conn := connect(t, proxy)
	for n := range 2 {
		noErr(t, insert(t, conn, n))
	}
	tag, err := conn.Exec(t.Context(), "delete from t where n < 0")
	if err != nil || tag.RowsAffected() != 7 {
		t.Errorf("got %v %v, want the tag that was put in", tag, err)
	}
	if got := db.Value("select string_agg(n::text, ' ' order by n) from t"); got != "100 101" {
		t.Errorf("the table has %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if seen["P insert into t values ($1)"] != 1 || seen["E insert into t values ($1)"] != 2 || seen["Q commit"] != 2 {
		t.Errorf("seen %v", seen)
	}
}

// Proves that a link that is down lets nobody through and breaks what there is,
// that it can come back, and that the proxy counts.
func TestDownAndUp(t *testing.T) {
	proxy, _ := behind(t)
	conn := connect(t, proxy)
	proxy.Down()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection lives on a link that is down")
	}
	if other, err := pgx.Connect(t.Context(), proxy.URL()); err == nil {
		_ = other.Close(t.Context())
		t.Error("connected over a link that is down")
	}
	proxy.Up()
	noErr(t, insert(t, connect(t, proxy), 1))
	if got := proxy.Stats(); got.Cut != 1 || got.Refused == 0 || got.Opened != 2 {
		t.Errorf("counted %+v", got)
	}
}
