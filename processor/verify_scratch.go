package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/schema/tables"
)

// scratchPrefix begins the names of the schemas of verifications.
const scratchPrefix = "oncestream_verify_"

// workshop makes the scratch schemas of one verification and drops them. Its
// connection holds a lock on the verification's id for as long as it lives, by
// which others know that the schemas are in use.
type workshop struct {
	conn *pgx.Conn
	id   string
	// path is the search path of the pipeline.
	path   []string
	copies tables.CopyOptions
	made   []string
	left   []string // what was dropped that others had left
}

// scratch is a place for the effects of one run, and beside it the ledger. They
// are two schemas, since a table of the user's may be called as one of ours.
type scratch struct {
	effects, ledger string
	path            string
	tables          []tables.Name // the copies, without partitions
	leftOut         []tables.LeftOut
}

// openWorkshop connects, and drops what killed verifications have left.
func (p *Processor) openWorkshop(ctx context.Context, copies tables.CopyOptions) (*workshop, error) {
	pool, err := openPool(ctx, p.cfg.Group, p.cfg.Postgres)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	session, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	w := &workshop{conn: session.Hijack(), id: scratchPrefix + strings.ToLower(rand.Text()[:idLength]), copies: copies}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.close(ctx))
	}
	return w, nil
}

// idLength is how many letters the id of a verification has behind the prefix.
const idLength = 8

func (w *workshop) open(ctx context.Context) (err error) {
	if w.left, err = cleanScratch(ctx, w.conn); err != nil {
		return err
	}
	if _, err = tables.TryHold(ctx, w.conn, w.id); err != nil {
		return err
	}
	w.path, err = tables.SearchPath(ctx, w.conn)
	return err
}

// CleanScratch drops the scratch schemas that killed verifications have left in
// the database, and returns their names. Those of one that runs are left alone.
// Verify does so itself when it begins.
func (p *Processor) CleanScratch(ctx context.Context) ([]string, error) {
	w, err := p.openWorkshop(ctx, tables.CopyOptions{})
	if err != nil {
		return nil, err
	}
	return w.left, w.close(ctx)
}

func cleanScratch(ctx context.Context, conn *pgx.Conn) ([]string, error) {
	names, err := tables.Scratches(ctx, conn, scratchPrefix)
	if err != nil {
		return nil, err
	}
	var dropped []string
	for _, name := range names {
		id := name[:min(len(name), len(scratchPrefix)+idLength)]
		free, err := tables.TryHold(ctx, conn, id)
		if err != nil {
			return dropped, err
		}
		if !free {
			continue
		}
		if err := errors.Join(tables.DropSchema(ctx, conn, name), tables.LetGo(ctx, conn, id)); err != nil {
			return dropped, err
		}
		dropped = append(dropped, name)
	}
	return dropped, nil
}

// clockShift is how far ahead the other clock is: another day, month and year.
const clockShift = 400 * 24 * time.Hour

// make makes a scratch. Where it is shifted, its clock and its sequences are
// others than those of the database.
func (w *workshop) make(ctx context.Context, name string, shifted bool) (*scratch, error) {
	s := &scratch{effects: w.id + "_" + name, ledger: w.id + "_" + name + "_ledger"}
	w.made = append(w.made, s.effects, s.ledger)
	// pg_catalog is named so that the scratch comes before it, and its clock.
	s.path = pgx.Identifier{s.effects}.Sanitize() + ", pg_catalog"
	for _, live := range w.path {
		s.path += ", " + pgx.Identifier{live}.Sanitize()
	}
	for _, schema := range []string{s.effects, s.ledger} {
		if err := tables.CreateScratch(ctx, w.conn, schema); err != nil {
			return nil, fmt.Errorf("processor: verify: make a scratch schema, for which the role needs CREATE on the database: %w", err)
		}
	}
	if _, err := tables.Migrate(ctx, w.conn.Config().Copy(), s.ledger); err != nil {
		return nil, err
	}
	return s, w.fill(ctx, s, shifted)
}

// fill copies the tables.
func (w *workshop) fill(ctx context.Context, s *scratch, shifted bool) error {
	if shifted {
		if err := tables.ShiftClock(ctx, w.conn, s.effects, clockShift); err != nil {
			return err
		}
	}
	copied, err := tables.CopyStructure(ctx, w.conn, s.effects, w.copies)
	if err != nil {
		return err
	}
	s.leftOut = copied.LeftOut
	for _, t := range copied.Tables {
		if !t.Partition {
			s.tables = append(s.tables, t.To)
		}
	}
	slices.SortFunc(s.tables, func(a, b tables.Name) int { return strings.Compare(a.Table, b.Table) })
	if err := tables.CopySequences(ctx, w.conn, s.effects, w.path); err != nil || !shifted {
		return err
	}
	if err := tables.ShiftDefaults(ctx, w.conn, s.effects); err != nil {
		return err
	}
	return tables.ShiftSequences(ctx, w.conn, s.effects)
}

// drop drops a scratch that is not needed any more.
func (w *workshop) drop(ctx context.Context, s *scratch) error {
	return tables.DropSchema(ctx, w.conn, s.effects, s.ledger)
}

// close drops all that was made, whatever has become of ctx and the connection,
// which the end of ctx may have closed.
func (w *workshop) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if w.conn.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, w.conn.Config())
		if err != nil {
			return fmt.Errorf("processor: verify: the schemas %s_* are left, which the next verification drops, or --clean: %w", w.id, err)
		}
		w.conn = conn
	}
	return errors.Join(tables.DropSchema(ctx, w.conn, w.made...), w.conn.Close(ctx))
}

// postgres are the settings of a run in the scratch: all that it finds by a bare
// name is found there first. A crash of the server ends the verification, so no
// COMMIT waits for the disk.
func (s *scratch) postgres(p Postgres, cuts *cutter) Postgres {
	configure := p.Configure
	p.Schema, p.Concurrency = s.ledger, 1
	p.Configure = func(cfg *pgxpool.Config) error {
		if configure != nil {
			if err := configure(cfg); err != nil {
				return err
			}
		}
		for name, value := range map[string]string{"search_path": s.path, "synchronous_commit": "off", "application_name": "oncestream verify"} {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
		if cuts != nil {
			cuts.install(cfg.ConnConfig)
		}
		return nil
	}
	return p
}
