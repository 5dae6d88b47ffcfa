//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// settings of the server: as in production, what is committed is on the disk.
// Memory and log are sized for a small machine of one's own, so that no run is
// told from another by a checkpoint that happens to fall into it.
func settings() map[string]string {
	return map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min",
	}
}

// machine is what all contenders meet: a broker, a server, the two programs.
type machine struct {
	*options
	broker     *processortest.RealBroker
	postgres   *embedded.Server
	admin      *pgx.Conn
	postmaster int // its process id
	dir        string
	self       string // this program
	databases  int    // made so far
}

func openMachine(ctx context.Context, o *options) (*machine, error) {
	m := &machine{options: o}
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *machine) open(ctx context.Context) (err error) {
	if m.binary, err = filepath.Abs(m.binary); err != nil {
		return err
	}
	if _, err := os.Stat(m.binary); err != nil {
		return fmt.Errorf("--binary: build it first: %w", err)
	}
	if m.self, err = os.Executable(); err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp("", "oncestream-benchmark-"); err != nil {
		return err
	}
	if m.postgres, err = embedded.Start(ctx, embedded.Options{Settings: settings()}); err != nil {
		return err
	}
	if err := m.openDatabase(ctx); err != nil {
		return err
	}
	m.broker, err = processortest.StartBroker(ctx, processortest.BrokerOptions{
		JVM: []string{"-Xms512m", "-Xmx1g", "-XX:+UseG1GC"},
	})
	return err
}

func (m *machine) openDatabase(ctx context.Context) (err error) {
	if m.admin, err = pgx.Connect(ctx, m.postgres.URL("")); err != nil {
		return err
	}
	var backend int
	if err := m.admin.QueryRow(ctx, "select pg_backend_pid()").Scan(&backend); err != nil {
		return err
	}
	self, err := readProcess(backend)
	if err != nil {
		return err
	}
	m.postmaster = self.parent
	return m.makeTemplate(ctx)
}

// makeTemplate makes the database that each contender gets a copy of.
func (m *machine) makeTemplate(ctx context.Context) error {
	if _, err := m.admin.Exec(ctx, "create database template"); err != nil {
		return err
	}
	cfg, err := pgx.ParseConfig(m.postgres.URL("template"))
	if err != nil {
		return err
	}
	if _, err := tables.Migrate(ctx, cfg, ledgerSchema); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, targetTables+ceilingTables)
	return errors.Join(err, conn.Close(ctx))
}

const ledgerSchema = "oncestream"

// targetTables are the tables of the payments pipeline; see the example.
const targetTables = `
create table payments (
  event_id uuid primary key, customer_id bigint not null, amount numeric(14, 2) not null,
  currency text not null, method text, created_at timestamptz not null
);
create table customer_totals (
  customer_id bigint primary key, total numeric(20, 2) not null, payments bigint not null
);
`

// database makes a fresh database and returns its name. The checkpoint writes
// what earlier runs have left, so that none pays for another.
func (m *machine) database(ctx context.Context) (string, error) {
	m.databases++
	name := "run_" + strconv.Itoa(m.databases)
	for _, statement := range []string{"create database " + name + " template template", "checkpoint"} {
		if _, err := m.admin.Exec(ctx, statement); err != nil {
			return "", err
		}
	}
	return name, nil
}

func (m *machine) drop(ctx context.Context, database string) error {
	_, err := m.admin.Exec(ctx, "drop database "+database+" with (force)")
	return err
}

// produce fills a topic by the program's own command.
func (m *machine) produce(ctx context.Context, topic string, records, partitions int) error {
	cmd := exec.CommandContext(ctx, m.binary, "produce", "--brokers", m.brokers(), "--topic", topic, "--random-keys",
		"--records", strconv.Itoa(records), "--partitions", strconv.Itoa(partitions))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("produce %d records: %w\n%s", records, err, out)
	}
	return nil
}

func (m *machine) brokers() string { return strings.Join(m.broker.Addrs(), ",") }

func (m *machine) close() error {
	var errs []error
	if m.admin != nil {
		errs = append(errs, m.admin.Close(context.Background()))
	}
	if m.broker != nil {
		errs = append(errs, m.broker.Close())
	}
	if m.postgres != nil {
		errs = append(errs, m.postgres.Close())
	}
	if m.dir != "" {
		errs = append(errs, os.RemoveAll(m.dir))
	}
	return errors.Join(errs...)
}
