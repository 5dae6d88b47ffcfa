package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// demoPipeline is the pipeline of the demo. The brackets are filled in. Its
// session timeout is short, as nobody likes to wait in a demo.
const demoPipeline = `name: payments
kafka: {brokers: ["[brokers]"], topic: payments, start: earliest, session_timeout: 3s}
postgres: {url: "[url]"}
batch: {max_records: [batch]}
decode: {format: json}
key: {field: event_id, type: uuid}
sinks:
  - insert: {table: payments}
  - sum:    {table: customer_totals, key: {customer_id: customer_id}, add: {total: amount, payments: 1}}
`

// demoTables are the tables of the demo. There is no unique constraint on
// event_id: nothing but the ledger keeps a payment from being stored twice.
const demoTables = `
create table payments (
  event_id    uuid not null,
  customer_id bigint not null,
  amount      numeric(18,2) not null,
  currency    text not null,
  method      text not null,
  created_at  timestamptz not null
);
create table customer_totals (
  customer_id bigint primary key,
  total       numeric(20,2) not null,
  payments    bigint not null
)`

// demoWorld is what the demo runs on: a PostgreSQL server, a Kafka cluster in
// this process, a folder with the pipeline file and the members' log.
type demoWorld struct {
	folder, file, url string
	log               *os.File
	postgres          *embedded.Server
	kafka             *kfake.Cluster
}

// openWorld starts everything. What has started is closed where the rest fails.
func openWorld(ctx context.Context, partitions, batch int) (*demoWorld, error) {
	w := &demoWorld{}
	if err := w.open(ctx, partitions, batch); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *demoWorld) open(ctx context.Context, partitions, batch int) (err error) {
	if w.folder, err = os.MkdirTemp("", "oncestream-demo-"); err != nil {
		return err
	}
	if w.log, err = os.Create(filepath.Join(w.folder, "members.log")); err != nil {
		return err
	}
	w.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second), kfake.SeedTopics(int32(partitions), "payments"))
	if err != nil {
		return fmt.Errorf("start the Kafka cluster of the demo: %w", err)
	}
	if w.postgres, err = embedded.Start(ctx, embedded.Options{}); err != nil {
		return err
	}
	w.url = w.postgres.URL("")
	if err := w.writeFile(batch); err != nil {
		return err
	}
	return w.createTables(ctx)
}

func (w *demoWorld) writeFile(batch int) error {
	text := strings.NewReplacer(
		"[brokers]", strings.Join(w.kafka.ListenAddrs(), `", "`), "[url]", w.url, "[batch]", strconv.Itoa(batch),
	).Replace(demoPipeline)
	w.file = filepath.Join(w.folder, "payments.yaml")
	return os.WriteFile(w.file, []byte(text), 0o600)
}

func (w *demoWorld) createTables(ctx context.Context) error {
	cfg, err := parseURL(w.url)
	if err != nil {
		return err
	}
	if _, err := tables.Migrate(ctx, cfg, "oncestream"); err != nil {
		return err
	}
	return withConn(ctx, w.url, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, demoTables)
		return err
	})
}

// close stops everything and removes the folder.
func (w *demoWorld) close() error {
	var errs []error
	if w.postgres != nil {
		errs = append(errs, w.postgres.Close())
	}
	if w.kafka != nil {
		w.kafka.Close()
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	if w.folder != "" {
		errs = append(errs, os.RemoveAll(w.folder))
	}
	return errors.Join(errs...)
}

// logTail returns the last lines that the members have logged.
func (w *demoWorld) logTail(n int) string {
	text, err := os.ReadFile(filepath.Join(w.folder, "members.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
