package tablestest_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema/tables/embedded"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) { tablestest.Main(m) }

// A test's schema holds the ledger's tables and the test's own, and nothing of
// another test's.
func TestNew(t *testing.T) {
	db, other := tablestest.New(t), tablestest.New(t)
	db.Exec("create table account (id int); insert into account values (1); insert into handler (name) values ('h')")
	if got := db.Value("select count(*) from handler"); got != "1" {
		t.Errorf("handler has %s rows", got)
	}
	if got := other.Value("select count(*) from handler"); got != "0" {
		t.Errorf("the other test's handler has %s rows", got)
	}
	if got := other.Value("select to_regclass('account')"); got != tablestest.Null {
		t.Errorf("the other test sees %s", got)
	}
	if got := db.Value("select current_schema"); got != db.Schema {
		t.Errorf("schema is %s, want %s", got, db.Schema)
	}
}

// Rows and Dump show the server's text, nulls, and wide characters aligned.
func TestDump(t *testing.T) {
	db := tablestest.New(t, tablestest.Unmigrated())
	query := `select * from (values (1, 'Ödön', '\x00'::bytea), (22, null, null)) v (id, owner, raw) where id < $1`
	want := "id  owner  raw\n1   Ödön   \\x00\n22  null   null\n"
	if got := db.Dump(query, 30); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := db.Dump(query, 0); got != "id  owner  raw\n" {
		t.Errorf("of no rows: %q", got)
	}
	if got := db.Rows(query, 2); len(got) != 1 || strings.Join(got[0], "|") != `1|Ödön|\x00` {
		t.Errorf("rows are %q", got)
	}
}

// The schema and its sessions go with the test, whatever its name is.
func TestDropped(t *testing.T) {
	watch := tablestest.New(t, tablestest.Unmigrated())
	var schema string
	t.Run("A name, with \"quotes\" and "+strings.Repeat("length ", 12), func(t *testing.T) {
		db := tablestest.New(t)
		schema = db.Schema
		t.Cleanup(func() { db.Exec("select 1") }) // works until the end
	})
	if n := watch.Value("select count(*) from pg_namespace where nspname = $1", schema); schema == "" || n != "0" {
		t.Errorf("schema %q: %s left", schema, n)
	}
}

// The options reach the pool.
func TestConfigure(t *testing.T) {
	db := tablestest.New(t, tablestest.Configure(func(c *pgxpool.Config) { c.MaxConns = 1 }),
		tablestest.Configure(func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "me" }))
	if got := db.Value("select current_setting('application_name')"); got != "me" || db.Pool.Config().MaxConns != 1 {
		t.Errorf("application is %s, at most %d connections", got, db.Pool.Config().MaxConns)
	}
}

// The URL leads another program, one with libpq too, to the same schema.
func TestURL(t *testing.T) {
	db := tablestest.New(t)
	psql, err := exec.LookPath("psql")
	if err != nil {
		conn, err := pgx.Connect(t.Context(), db.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var schema string
		if err := conn.QueryRow(t.Context(), "select current_schema").Scan(&schema); err != nil || schema != db.Schema {
			t.Errorf("schema is %s, %v", schema, err)
		}
		return
	}
	out, err := exec.CommandContext(t.Context(), psql, "-Atc", "select current_schema, current_setting('timezone')", db.URL).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != db.Schema+"|UTC" {
		t.Errorf("psql says %s, %v", got, err)
	}
}

// A server of the test's own takes a schema, also by keywords, and may be killed
// without harm to the shared one.
func TestServer(t *testing.T) {
	s := tablestest.Server(t)
	shared := tablestest.New(t)
	byURL := tablestest.New(t, tablestest.OnServer(s.URL("")))
	byURL.Exec("insert into handler (name) values ('kept')")
	cfg := byURL.Pool.Config().ConnConfig
	words := tablestest.New(t, tablestest.OnServer(
		"host="+cfg.Host+" port="+byURL.Value("select current_setting('port')")+" user="+cfg.User+" dbname="+cfg.Database))
	if got := words.Value("select current_schema"); got != words.Schema {
		t.Errorf("by keywords the schema is %s, want %s", got, words.Schema)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := shared.Value("select 1"); got != "1" {
		t.Errorf("the shared server says %s", got)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	byURL.Pool.Reset()
	if got := byURL.Value("select name from handler"); got != "kept" {
		t.Errorf("after the restart: %s", got)
	}
}

// The server that the environment names is used.
func TestEnvironment(t *testing.T) {
	s, err := embedded.Start(t.Context(), embedded.Options{Settings: map[string]string{"cluster_name": "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	t.Setenv(tablestest.EnvDatabaseURL, s.URL(""))
	if got := tablestest.New(t).Value("select current_setting('cluster_name')"); got != "theirs" {
		t.Errorf("the server is %q", got)
	}
}
