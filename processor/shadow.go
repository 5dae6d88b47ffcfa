package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// ShadowOptions say where effects are rebuilt and how they are compared.
type ShadowOptions struct {
	// Schema is created for the copies of the tables. The ledger of the shadow is
	// in another, of this name and "_ledger". Required.
	Schema string
	// Replace drops both where an earlier shadow replay has left them. Schemas that
	// are none of a shadow are never dropped. Defaults to false.
	Replace bool
	// Drop drops both at the end. Defaults to false: what was rebuilt can be looked
	// at. A shadow replay that fails or is stopped always drops them.
	Drop bool
	// Tables are those that the pipeline writes to, as "table" or "schema.table".
	// They are rebuilt from nothing. Small tables that their foreign keys refer to
	// are copied with their rows. Defaults to all tables of the search path but the
	// ledger's.
	Tables []string
	// WithRows are copied with their rows, because effects depend on what is in
	// them. They are not compared. Defaults to none.
	WithRows []string
	// Exclude are columns, as "table.column", that are not compared.
	// Defaults to none.
	Exclude []string
	// Keys says for a table by which columns rows are paired. Defaults to the
	// primary key; see [TableDifference] for a key that the database draws itself.
	Keys map[string][]string
	// Strict also counts differences in columns that the database fills in by
	// itself: now(), sequences, random numbers. Defaults to false: they are told
	// but do not count.
	Strict bool
	// Examples is how many rows that differ are given for each table.
	// Defaults to 10.
	Examples int
}

const (
	shadowExamples = 10
	ledgerSuffix   = "_ledger"
	// liveSuffix is for the live rows of one moment, see shadow.compare.
	liveSuffix = "_live"
	maxName    = 63 // bytes, of a PostgreSQL identifier
)

func (o ShadowOptions) withDefaults() (ShadowOptions, error) {
	fill(&o.Examples, shadowExamples)
	if o.Schema == "" || len(o.Schema)+len(ledgerSuffix) > maxName {
		return o, fmt.Errorf("processor: shadow: Schema: a name of at most %d bytes is required (got %q)", maxName-len(ledgerSuffix), o.Schema)
	}
	for _, e := range o.Exclude {
		if table, column, ok := strings.Cut(e, "."); !ok || table == "" || column == "" {
			return o, fmt.Errorf("processor: shadow: Exclude: want table.column, without the table's schema (got %q)", e)
		}
	}
	return o, nil
}

// schemas are all that a shadow replay makes.
func (o ShadowOptions) schemas() []string {
	return []string{o.Schema, o.Schema + ledgerSuffix, o.Schema + liveSuffix}
}

// Shadow rebuilds the effects of a range beside the live tables, and says how the
// live tables differ from what was rebuilt. It copies the structure of the tables
// into a schema of its own, reads the range again through the same transactions,
// under a ledger that knows no key yet, and compares row by row.
//
// The zero Range is all that the group has read; then an untouched history gives
// no difference. It joins no group and changes no live table: a transaction that
// would is refused. The pipeline may run meanwhile, in another Processor: what it
// has done since is replayed too, so that both sides are compared as of the same
// stored offsets.
//
// The partitions are handled by one worker, in the order in which they are read.
// Effects that depend on the order of records of different partitions may differ
// from those of the live run, and so may those that depend on rows which were
// there before.
func (p *Processor) Shadow(ctx context.Context, r Range, o ShadowOptions) (report ShadowReport, err error) {
	if o, err = o.withDefaults(); err != nil {
		return ShadowReport{}, err
	}
	s := &shadow{p: p, bounds: r, opts: o, workers: map[int32]*worker{}, report: ShadowReport{Schema: o.Schema}}
	if err := s.open(ctx); err != nil {
		return ShadowReport{}, err
	}
	defer func() { err = errors.Join(err, s.close(ctx, err != nil)) }()
	err = s.run(ctx)
	return s.report, err
}

// shadow is one run of Shadow.
type shadow struct {
	p      *Processor // as it is configured for the live tables
	bounds Range
	opts   ShadowOptions
	conn   *pgx.Conn       // makes the schemas, looks at the live ledger, and compares
	ledger *offsets.Ledger // the live one

	copied  tables.Copied
	topic   Topic
	at      *Processor // as it is configured for the shadow
	pool    *pgxpool.Pool
	engine  *engine
	workers map[int32]*worker // by partition
	skipped []offsets.Span    // what a person has left out
	made    bool              // the schemas are ours
	report  ShadowReport
}

// withSettings returns the configuration with settings for each session, which
// go over all others.
func (p Postgres) withSettings(settings map[string]string) Postgres {
	configure := p.Configure
	p.Configure = func(cfg *pgxpool.Config) error {
		if configure != nil {
			if err := configure(cfg); err != nil {
				return err
			}
		}
		maps.Copy(cfg.ConnConfig.RuntimeParams, settings)
		return nil
	}
	return p
}

// open connects to the live side. To copy and to compare may take longer than a
// batch may.
func (s *shadow) open(ctx context.Context) error {
	cfg := s.p.cfg
	pool, err := openPool(ctx, cfg.Group, cfg.Postgres.withSettings(map[string]string{"statement_timeout": "0", "application_name": "oncestream shadow"}))
	if err != nil {
		return err
	}
	defer pool.Close()
	err = s.p.untilReachable(ctx, func(ctx context.Context) error {
		session, err := pool.Acquire(ctx)
		if err == nil {
			s.conn = session.Hijack()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.ledger = offsets.New(offsets.Options{Schema: cfg.Postgres.Schema, Group: cfg.Group, Topic: cfg.Kafka.Topic, Handler: s.p.handler})
	if err := errors.Join(tables.Check(ctx, s.conn, cfg.Postgres.Schema), s.ledger.CheckEnvironment(ctx, s.conn, cfg.Environment)); err != nil {
		return errors.Join(err, s.conn.Close(ctx))
	}
	return nil
}

// close drops what is not to stay, whatever has become of ctx.
func (s *shadow) close(ctx context.Context, failed bool) error {
	if s.pool != nil {
		s.pool.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeShadow)
	defer cancel()
	var err error
	if s.made && (failed || s.opts.Drop) {
		err = s.drop(ctx)
	}
	return errors.Join(err, s.conn.Close(ctx))
}

const closeShadow = time.Minute

// drop drops the schemas: by another connection, where the one that made them
// was closed, as it is when ctx ends within a statement.
func (s *shadow) drop(ctx context.Context) error {
	conn := s.conn
	if conn.IsClosed() {
		var err error
		if conn, err = pgx.ConnectConfig(ctx, s.conn.Config()); err != nil {
			return fmt.Errorf("processor: shadow: the schemas %s are left: %w", strings.Join(s.opts.schemas(), ", "), err)
		}
		defer conn.Close(ctx)
	}
	return tables.DropSchema(ctx, conn, s.opts.schemas()...)
}

func (s *shadow) run(ctx context.Context) error {
	progress, err := s.ledger.Progress(ctx, s.conn)
	if err != nil {
		return err
	}
	spans, err := s.bounds.spans(s.p.cfg.Kafka.Topic, progress)
	if err != nil {
		return err
	}
	s.report.Compacted = s.p.recognise(ctx)
	if err := s.makeSchemas(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.replay(ctx, spans); err != nil {
		return err
	}
	return s.compare(ctx)
}

// recognise reports whether the topic is compacted. Where it cannot be asked, it
// says so in the log.
func (p *Processor) recognise(ctx context.Context) bool {
	compacted, err := p.cfg.Kafka.compacted(ctx)
	if err != nil {
		p.cfg.Logger.LogAttrs(ctx, slog.LevelWarn, "whether the topic is compacted, and so no history, is not known", slog.Any("reason", err))
	}
	return compacted
}

// makeSchemas makes the shadow's tables and its ledger.
func (s *shadow) makeSchemas(ctx context.Context) error {
	for _, name := range s.opts.schemas() {
		if err := s.vacate(ctx, name); err != nil {
			return err
		}
	}
	s.made = true
	for _, name := range []string{s.opts.Schema, s.opts.Schema + ledgerSuffix} {
		if err := tables.CreateScratch(ctx, s.conn, name); err != nil {
			return fmt.Errorf("processor: shadow: make schema %s, for which the role needs CREATE on the database: %w", name, err)
		}
	}
	if _, err := tables.Migrate(ctx, s.conn.Config(), s.opts.Schema+ledgerSuffix); err != nil {
		return err
	}
	var err error
	s.copied, err = tables.CopyStructure(ctx, s.conn, s.opts.Schema, tables.CopyOptions{Tables: tables.ParseNames(s.opts.Tables), Rows: tables.ParseNames(s.opts.WithRows)})
	if err != nil {
		return err
	}
	s.report.LeftOut = s.copied.LeftOut
	return s.checkNames()
}

// checkNames refuses an option about a table that is not rebuilt: it is misspelt.
func (s *shadow) checkNames() error {
	rebuilt := s.rebuilt()
	known := func(table string) bool {
		return slices.ContainsFunc(rebuilt, func(n tables.Name) bool { return n.Table == table })
	}
	for table := range s.opts.Keys {
		if !known(table) {
			return fmt.Errorf("processor: shadow: Keys: no table %q is rebuilt (--key)", table)
		}
	}
	for _, e := range s.opts.Exclude {
		if table, _, _ := strings.Cut(e, "."); !known(table) {
			return fmt.Errorf("processor: shadow: Exclude: no table %q is rebuilt (--exclude %s)", table, e)
		}
	}
	return nil
}

// vacate sees to it that there is no schema of the name.
func (s *shadow) vacate(ctx context.Context, name string) error {
	exists, scratch, err := tables.IsScratch(ctx, s.conn, name)
	switch {
	case err != nil || !exists:
		return err
	case !scratch:
		return fmt.Errorf("processor: shadow: schema %s: %w: name another one", name, tables.ErrNotScratch)
	case !s.opts.Replace:
		return fmt.Errorf("processor: shadow: schema %s: %w", name, ErrShadowExists)
	}
	return tables.DropSchema(ctx, s.conn, name)
}

// ErrShadowExists is what Shadow answers where an earlier one has left its
// schema, unless it is to replace it.
var ErrShadowExists = errors.New("an earlier shadow replay has left it: look at it, and replace it with ShadowOptions.Replace (--replace)")
