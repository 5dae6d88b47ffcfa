package tablestest

import (
	"context"
	"crypto/rand"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema/tables"
)

// DB is a schema of the test's own, dropped at its end.
type DB struct {
	// Pool connects with Schema as the whole search path and UTC as time zone.
	Pool *pgxpool.Pool
	// Schema holds the ledger's tables and whatever the test creates.
	Schema string
	// URL is a connection string to the same effect, for another process; libpq
	// understands it too.
	URL string

	tb testing.TB
}

// Option changes what New does.
type Option func(*options)

type options struct {
	server    string
	unmigrate bool
	configure []func(*pgxpool.Config)
}

// OnServer puts the schema on the server with the given connection string, for
// a test that has a server of its own. Defaults to the shared server.
func OnServer(url string) Option {
	return func(o *options) { o.server = url }
}

// Unmigrated leaves the schema empty. Defaults to the ledger's tables.
func Unmigrated() Option {
	return func(o *options) { o.unmigrate = true }
}

// Configure changes the pool's configuration before it connects.
func Configure(change func(*pgxpool.Config)) Option {
	return func(o *options) { o.configure = append(o.configure, change) }
}

// ctx outlives the test, so that the methods work in its cleanups too.
func (db *DB) ctx() context.Context { return context.WithoutCancel(db.tb.Context()) }

// New returns a fresh schema with the ledger's tables. The test fails at once
// where there is no server. A server of the test's own must run again at the
// test's end, or the schema cannot be dropped and the test fails.
func New(tb testing.TB, opts ...Option) *DB {
	tb.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.server == "" {
		server, err := shared.url(tb.Context())
		must(tb, err)
		o.server = server
	}
	schema := schemaName(tb.Name())
	db := &DB{Schema: schema, URL: withSearchPath(o.server, schema), tb: tb}
	db.create(o)
	db.Pool = newPool(tb, db.URL, o.configure)
	return db
}

// At returns the same schema on another server: a standby, or one that was
// restored elsewhere. The schema is not dropped there.
func (db *DB) At(tb testing.TB, server string) *DB {
	tb.Helper()
	url := withSearchPath(server, db.Schema)
	return &DB{Pool: newPool(tb, url, nil), Schema: db.Schema, URL: url, tb: tb}
}

// create leaves the schema to a cleanup that runs after the pool's, which is
// registered later.
func (db *DB) create(o options) {
	db.tb.Helper()
	cfg, err := pgx.ParseConfig(o.server)
	must(db.tb, err)
	db.tb.Cleanup(func() { db.drop(cfg) })
	if o.unmigrate {
		db.once(cfg, "create schema "+db.Schema)
		return
	}
	_, err = tables.Migrate(db.ctx(), cfg, db.Schema)
	must(db.tb, err)
}

func (db *DB) drop(cfg *pgx.ConnConfig) {
	db.once(cfg, "drop schema if exists "+db.Schema+" cascade")
}

func (db *DB) once(cfg *pgx.ConnConfig, sql string) {
	db.tb.Helper()
	ctx := db.ctx()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	must(db.tb, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	must(db.tb, err)
}

func newPool(tb testing.TB, url string, configure []func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	must(tb, err)
	for _, change := range configure {
		change(cfg)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(tb.Context()), cfg)
	must(tb, err)
	tb.Cleanup(pool.Close)
	return pool
}

// schemaName keeps what is readable of the test's name, within the 63 bytes of
// an identifier, and needs no quotes.
func schemaName(test string) string {
	readable := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(test), "_")
	return strings.ToLower("t_" + readable[:min(len(readable), 44)] + "_" + rand.Text()[:12])
}

// withSearchPath adds the session's settings to a connection string of either
// form. It uses "options", which libpq knows, not pgx's own names.
func withSearchPath(server, schema string) string {
	settings := "-c search_path=" + schema + " -c timezone=UTC"
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return server + " options='" + settings + "'"
	}
	q := u.Query()
	q.Set("options", strings.TrimSpace(q.Get("options")+" "+settings))
	// libpq reads a plus as a plus, not as a space.
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
