package tables

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// CopyOptions says which tables are copied.
type CopyOptions struct {
	// Tables are copied without their rows; a partitioned table comes with its
	// partitions. Defaults to all tables of Schemas but the ledger's, those of
	// extensions and those that Rows names.
	Tables []Name
	// Schemas is where Tables are looked for if none are named. Defaults to the
	// schemas of the connection's search path.
	Schemas []string
	// Rows are copied with their rows, whatever their number.
	Rows []Name
	// RowLimit is how many rows a table may have that is copied with its rows
	// only because a foreign key of another one refers to it. Where it has more,
	// it is not copied and the foreign key is left out. Defaults to 10,000.
	RowLimit int64
}

// Copied is what CopyStructure has made.
type Copied struct {
	// Tables are the copies, partitions after the tables they belong to.
	Tables []CopiedTable
	// LeftOut is what a copy lacks, and why.
	LeftOut []LeftOut
	// SearchPath are the schemas in which the connection looks for a bare name, in
	// order. With the copies' schema put before them, bare names mean the copies.
	SearchPath []string
}

// CopiedTable is one copy.
type CopiedTable struct {
	// From is the table, To its copy.
	From, To Name
	// Rows is how many rows were copied.
	Rows int64
	// WithRows says that it was copied with its rows.
	WithRows bool
	// Partition says that it is a partition of another copy.
	Partition bool
}

// LeftOut is something that was not copied.
type LeftOut struct {
	// Table is the one that it belongs to, as it is called there.
	Table Name `json:"table"`
	// What names it: `foreign key "orders_customer_fkey"`.
	What string `json:"what"`
	// Why says the reason.
	Why string `json:"why"`
}

// String returns it in one line.
func (l LeftOut) String() string { return fmt.Sprintf("%s of %s: %s", l.What, l.Table, l.Why) }

// CopyStructure makes empty copies of tables in the scratch schema into, which
// is created (see [CreateScratch]) where there is none. A copy has its table's
// columns, defaults, identity and generated columns, constraints, indexes,
// triggers, partitions and, among the copies, foreign keys, all under the same
// names. What its defaults draw from a sequence comes from a sequence of its own,
// which starts anew. Types and functions are not copied: copies use those that
// are there.
//
// The text of a default is read again with "into, pg_catalog" as the search
// path, so that a function in the scratch schema takes the place of one of
// PostgreSQL's own of that name.
//
// It takes no lock on a table beyond ACCESS SHARE, the one of a select, and is
// one transaction: where it fails it leaves nothing.
func CopyStructure(ctx context.Context, conn *pgx.Conn, into string, o CopyOptions) (Copied, error) {
	if o.RowLimit == 0 {
		o.RowLimit = defaultRowLimit
	}
	c := &copier{into: into, opts: o}
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		c.tx = tx
		return c.run(ctx)
	})
	if err != nil {
		return Copied{}, fmt.Errorf("tables: copy into schema %q: %w", into, err)
	}
	return c.done, nil
}

const defaultRowLimit = 10_000

// copier is one run of CopyStructure.
type copier struct {
	tx      pgx.Tx
	into    string
	opts    CopyOptions
	sources []*source
	unread  []*source // of the sources
	done    Copied
}

// run reads all that is to be copied before it makes anything: texts of the
// catalog are read under an empty search path, which writes every name of the
// user's with its schema, and executed under another.
func (c *copier) run(ctx context.Context) error {
	if err := createScratch(ctx, c.tx, c.into); err != nil {
		return err
	}
	if err := c.choose(ctx); err != nil {
		return err
	}
	if err := c.set(ctx, "search_path", ""); err != nil {
		return err
	}
	if err := c.set(ctx, "quote_all_identifiers", "off"); err != nil {
		return err
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	if err := c.set(ctx, "search_path", pgx.Identifier{c.into}.Sanitize()+", pg_catalog"); err != nil {
		return err
	}
	return c.make(ctx)
}

func (c *copier) set(ctx context.Context, name, value string) error {
	_, err := c.tx.Exec(ctx, "select set_config($1, $2, true)", name, value)
	return err
}

// read completes the tables by those that foreign keys refer to, and reads what
// belongs to each.
func (c *copier) read(ctx context.Context) error {
	for len(c.unread) > 0 {
		s := c.unread[0]
		c.unread = c.unread[1:]
		if err := c.readParts(ctx, s); err != nil {
			return fmt.Errorf("read the structure of %s: %w", s.name, err)
		}
		if err := c.follow(ctx, s); err != nil {
			return err
		}
	}
	return c.nameCopies()
}

// nameCopies checks that no two tables want one name.
func (c *copier) nameCopies() error {
	taken := map[string]Name{}
	for _, s := range c.sources {
		if other, ok := taken[s.name.Table]; ok {
			return fmt.Errorf("both %s and %s would become %s: copy one of them", other, s.name, s.copyIn(c.into))
		}
		taken[s.name.Table] = s.name
	}
	return nil
}

// source returns the table with the oid, nil if it is not copied.
func (c *copier) source(oid uint32) *source {
	i := slices.IndexFunc(c.sources, func(s *source) bool { return s.oid == oid })
	if i < 0 {
		return nil
	}
	return c.sources[i]
}

func (c *copier) leaveOut(s *source, what, why string) {
	c.done.LeftOut = append(c.done.LeftOut, LeftOut{Table: s.name, What: what, Why: why})
}

// make executes all. Rows come before what would check or change them, foreign
// keys after all that they can refer to.
func (c *copier) make(ctx context.Context) error {
	steps := []func(*source) []string{c.sequencesOf, c.tableOf, c.defaultsOf, c.attachmentOf, nil, c.indexesOf, c.foreignKeysOf, c.triggersOf}
	for _, step := range steps {
		for _, s := range c.sources {
			if err := c.apply(ctx, s, step); err != nil {
				return fmt.Errorf("copy %s: %w", s.name, err)
			}
		}
	}
	for _, s := range c.sources {
		c.done.Tables = append(c.done.Tables, CopiedTable{From: s.name, To: s.copyIn(c.into), Rows: s.copied, WithRows: s.rows, Partition: s.partitionOf != 0})
	}
	return nil
}

// apply executes the statements of a step; nil is the step that copies rows.
func (c *copier) apply(ctx context.Context, s *source, step func(*source) []string) error {
	if step == nil {
		return c.copyRows(ctx, s)
	}
	for _, statement := range step(s) {
		if _, err := c.tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%w (in %s)", err, statement)
		}
	}
	return nil
}
