//go:build docker

package processortest_test

import (
	"net"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// A broker in a container takes the same steps as the others, is frozen and
// goes on, and keeps its records and its address when it is killed and started
// again.
func TestDockerBroker(t *testing.T) {
	b := processortest.Broker(t, processortest.BrokerOptions{Source: processortest.FromDocker})
	helpers(t, b.Client)
	b.CreateTopic(t, "t", 1)
	b.Produce(t, "t", 0, processortest.Values("before the crash")...)
	if err := b.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, b, time.Second); err == nil {
		t.Error("a paused broker answers")
	}
	if err := b.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, b, time.Second); err == nil {
		t.Error("a killed broker answers")
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, b.Client, "t", 0, 1); string(got[0].Value) != "before the crash" {
		t.Errorf("the record became %q", got[0].Value)
	}
}

// The ledger's tables and a lost answer to COMMIT are the same on PostgreSQL in
// a container.
func TestDockerPostgres(t *testing.T) {
	pg, err := testcontainers.Run(t.Context(), "postgres:18",
		testcontainers.WithEnv(map[string]string{"POSTGRES_PASSWORD": "secret"}),
		testcontainers.WithExposedPorts("5432/tcp"),
		// By TCP: while it sets itself up, the server listens on its socket only.
		testcontainers.WithWaitStrategy(wait.ForExec([]string{"pg_isready", "--host=127.0.0.1"})))
	testcontainers.CleanupContainer(t, pg)
	if err != nil {
		t.Fatal(err)
	}
	url := "postgres://postgres:secret@" + published(t, pg, "5432/tcp") + "/postgres"
	faults := processortest.AtCommit(1, processortest.CutAfter, 0)
	db := faultyDB(t, faults, tablestest.OnServer(url))
	if err := insert(t, db, "v"); err == nil {
		t.Error("the commit's answer was cut, and the client saw none of it")
	}
	if got := db.Value("select count(*) from t"); got != "1" {
		t.Errorf("the table holds %s rows, want 1", got)
	}
}

// published returns where a container's port is reached.
func published(t *testing.T, c testcontainers.Container, port string) string {
	t.Helper()
	docker, err := testcontainers.NewDockerProvider()
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	host, err := processortest.PublishedHost(t.Context(), docker)
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := c.MappedPort(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(host, mapped.Port())
}
