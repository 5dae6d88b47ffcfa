//go:build docker

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The pipeline of compose.yaml runs from nothing: compose brings all services
// up in their order, what is produced inside is in the tables to the cent and
// seen from this machine, and a stop of the container is a graceful one.
func TestDockerCompose(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := newCompose(ctx, t)
	c.run(t, "up", "--build", "--detach")

	var sent struct {
		Sent, Distinct int64
		Sum            string
	}
	produced := c.run(t, "run", "--rm", "-T", "--no-deps", "oncestream",
		"produce", "--records", "2000", "--duplicates", "0.1", "--json")
	if err := json.Unmarshal([]byte(produced), &sent); err != nil || sent.Sent != 2000 || sent.Distinct != 1800 {
		t.Fatalf("produce said %q (%v), want 2000 sent and 1800 distinct", produced, err)
	}
	c.waitProcessed(t, sent.Sent)
	c.checkTables(t, sent.Distinct, sent.Sum)

	c.run(t, "stop", "oncestream")
	id := strings.TrimSpace(c.run(t, "ps", "--all", "--quiet", "oncestream"))
	if code := c.output(t, "docker", "inspect", "--format={{.State.ExitCode}}", id); strings.TrimSpace(code) != "0" {
		t.Errorf("the stopped container's exit code is %s, want 0", code)
	}
}

// compose is a project of its own from compose.yaml, on free ports.
type compose struct {
	ctx     context.Context
	command []string
	env     []string
	binary  string // the program, for this machine
	url     string // of the database, from this machine
}

func newCompose(ctx context.Context, t *testing.T) *compose {
	t.Helper()
	kafka, postgres := freePort(ctx, t), freePort(ctx, t)
	c := &compose{
		ctx: ctx, command: composeCommand(ctx), binary: filepath.Join(t.TempDir(), "oncestream"),
		url: fmt.Sprintf("postgres://oncestream:oncestream@127.0.0.1:%d/oncestream", postgres),
	}
	c.env = append(os.Environ(), "KAFKA_PORT="+strconv.Itoa(kafka), "POSTGRES_PORT="+strconv.Itoa(postgres),
		"KAFKA_BROKERS=127.0.0.1:"+strconv.Itoa(kafka), "DATABASE_URL="+c.url)
	c.command = append(c.command, "--file", "../../compose.yaml", "--project-name", fmt.Sprintf("oncestream-test-%d", os.Getpid()))
	c.output(t, "go", "build", "-o", c.binary, ".")
	t.Cleanup(func() {
		c.ctx = context.WithoutCancel(ctx)
		if t.Failed() {
			t.Log(c.run(t, "logs", "--no-color", "--tail=40"))
		}
		c.run(t, "down", "--volumes", "--remove-orphans", "--timeout=5")
	})
	return c
}

// composeCommand prefers the plugin to the older program.
func composeCommand(ctx context.Context) []string {
	if exec.CommandContext(ctx, "docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	return []string{"docker-compose"}
}

func freePort(ctx context.Context, t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// run runs a compose command and returns its standard output.
func (c *compose) run(t *testing.T, args ...string) string {
	t.Helper()
	return c.output(t, slices.Concat(c.command, args)...)
}

func (c *compose) output(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(c.ctx, command[0], command[1:]...)
	var messages strings.Builder
	cmd.Env, cmd.Stderr = c.env, &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, messages.String())
	}
	return string(out)
}

// waitProcessed asks for the status, from this machine, until all records have
// been processed and no lag is left.
func (c *compose) waitProcessed(t *testing.T, records int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var status struct {
			Total struct{ Lag, Processed int64 }
		}
		out := c.output(t, c.binary, "status", "example/payments.yaml", "--json")
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			t.Fatalf("status %q: %v", out, err)
		}
		if status.Total.Lag == 0 && status.Total.Processed == records {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v; the status is still %s", ctx.Err(), out)
		}
	}
}

// checkTables compares both tables with what was produced.
func (c *compose) checkTables(t *testing.T, distinct int64, sum string) {
	t.Helper()
	conn, err := pgx.Connect(c.ctx, c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(c.ctx)
	for table, query := range map[string]string{
		"payments":        "select count(*), sum(amount)::text from payments",
		"customer_totals": "select sum(payments)::bigint, sum(total)::text from customer_totals",
	} {
		var count int64
		var total string
		if err := conn.QueryRow(c.ctx, query).Scan(&count, &total); err != nil {
			t.Fatal(err)
		}
		if count != distinct || total != sum {
			t.Errorf("%s holds %d payments of %s in sum, want %d of %s", table, count, total, distinct, sum)
		}
	}
}
