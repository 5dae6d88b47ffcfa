package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// benchPrefix begins the names of all that a bench makes.
const benchPrefix = "oncestream_bench_"

// benchScratch is what a bench makes and drops: schemas and a topic. Its connection
// holds a lock on its id while it lives, by which the next bench knows what a killed
// one has left.
type benchScratch struct {
	conn      *pgx.Conn
	id, topic string
	publisher *processor.Publisher
	created   bool // the topic
	places    int
}

// benchPlace is where one run has its effects and its ledger: two schemas, as a
// table of the user's may be called as one of ours.
type benchPlace struct {
	effects, ledger, path string
}

func openBench(ctx context.Context, c *config) (*benchScratch, error) {
	cfg, err := parseURL(c.engine.Postgres.URL)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the database of postgres.url (DATABASE_URL, --database-url): %w", err)
	}
	const idLength = 8
	s := &benchScratch{conn: conn, id: benchPrefix + strings.ToLower(rand.Text()[:idLength])}
	s.topic = s.id
	_, err = tables.TryHold(ctx, conn, s.id)
	if err == nil {
		err = s.clean(ctx, len(s.id))
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return s, nil
}

// clean drops the schemas of benches that live no more.
func (s *benchScratch) clean(ctx context.Context, length int) error {
	names, err := tables.Scratches(ctx, s.conn, benchPrefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		id := name[:min(len(name), length)]
		free, err := tables.TryHold(ctx, s.conn, id)
		if err != nil {
			return err
		}
		if !free || id == s.id {
			continue
		}
		if err := errors.Join(tables.DropSchema(ctx, s.conn, name), tables.LetGo(ctx, s.conn, id)); err != nil {
			return err
		}
	}
	return nil
}

// createTopic makes the scratch topic with as many partitions as the live one has.
func (s *benchScratch) createTopic(ctx context.Context, live processor.Kafka) error {
	topic, err := processor.InspectTopic(ctx, live)
	if err != nil {
		return err
	}
	live.Topic = s.topic
	if s.publisher, err = processor.OpenPublisher(live); err != nil {
		return err
	}
	s.created = true
	return s.publisher.CreateTopic(ctx, int32(len(topic.Partitions))) //nolint:gosec // a topic has not that many
}

// place makes the schemas of one run, with copies of the tables; all of the search
// path where a statement of the user's may write to any.
func (s *benchScratch) place(ctx context.Context, targets []string, all bool) (benchPlace, error) {
	s.places++
	effects := fmt.Sprintf("%s_%d", s.id, s.places)
	p := benchPlace{effects: effects, ledger: effects + "_ledger"}
	path, err := tables.SearchPath(ctx, s.conn)
	if err != nil {
		return p, err
	}
	p.path = pgx.Identifier{p.effects}.Sanitize() + ", pg_catalog"
	for _, live := range path {
		p.path += ", " + pgx.Identifier{live}.Sanitize()
	}
	for _, schema := range []string{p.effects, p.ledger} {
		if err := tables.CreateScratch(ctx, s.conn, schema); err != nil {
			return p, fmt.Errorf("bench: make a scratch schema, for which the role needs CREATE on the database: %w", err)
		}
	}
	if _, err := tables.Migrate(ctx, s.conn.Config().Copy(), p.ledger); err != nil {
		return p, err
	}
	var copies tables.CopyOptions
	if !all {
		copies.Tables = tables.ParseNames(targets)
	}
	_, err = tables.CopyStructure(ctx, s.conn, p.effects, copies)
	return p, err
}

// engine is the configuration of a run in the place.
func (p benchPlace) engine(live processor.Config, topic string) processor.Config {
	configure := live.Postgres.Configure
	live.Group, live.Environment = p.effects, ""
	live.Kafka.Topic, live.Kafka.Start, live.Kafka.InstanceID = topic, processor.Start{At: "earliest"}, processor.InstanceNone
	live.Postgres.Schema = p.ledger
	live.Postgres.Configure = func(cfg *pgxpool.Config) error {
		if configure != nil {
			if err := configure(cfg); err != nil {
				return err
			}
		}
		cfg.ConnConfig.RuntimeParams["search_path"] = p.path
		cfg.ConnConfig.RuntimeParams["application_name"] = "oncestream bench"
		return nil
	}
	return live
}

func (s *benchScratch) drop(ctx context.Context, p benchPlace) error {
	return tables.DropSchema(ctx, s.conn, p.effects, p.ledger)
}

// close drops what is left, whatever has become of ctx.
func (s *benchScratch) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var errs []error
	if s.created {
		errs = append(errs, s.publisher.DeleteTopic(ctx))
	}
	if s.publisher != nil {
		s.publisher.Close()
	}
	names, err := tables.Scratches(ctx, s.conn, s.id)
	errs = append(errs, err, tables.DropSchema(ctx, s.conn, names...), s.conn.Close(ctx))
	return errors.Join(errs...)
}
