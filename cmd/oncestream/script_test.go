package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

func TestMain(m *testing.M) {
	testscript.Main(tablestest.Runner{M: m}, map[string]func(){"oncestream": main})
}

// Each script of testdata runs the program as a person would, on a Kafka
// cluster and a database schema of its own. What a script proves is its first
// line.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sql":    scriptSQL,
			"query":  scriptQuery,
			"until":  scriptUntil,
			"send":   scriptSend,
			"put":    scriptPut,
			"seed":   scriptSeed,
			"topic":  scriptTopic,
			"exits":  scriptExits,
			"holds":  scriptHolds,
			"signal": scriptSignal,
		},
	})
}

// The keys of a script's values.
type (
	scriptDB    struct{}
	scriptKafka struct{}
	scriptTB    struct{}
	// scriptRegistry is a schema registry.
	scriptRegistry struct{}
)

// setUpScript gives a script its services. The ledger and the tables of the
// effects share the schema, which search_path finds and ONCESTREAM_SCHEMA names.
func setUpScript(env *testscript.Env) error {
	tb := env.T().(testing.TB)
	db := tablestest.New(tb, tablestest.Unmigrated())
	kafka := processortest.Kafka(tb)
	env.Setenv("DATABASE_URL", db.URL)
	env.Setenv("ONCESTREAM_SCHEMA", db.Schema)
	env.Setenv("KAFKA_BROKERS", strings.Join(kafka.Addrs(), ","))
	registry := srfake.New()
	env.Defer(registry.Close)
	env.Setenv("REGISTRY", registry.URL())
	env.Values[scriptRegistry{}] = registry
	env.Values[scriptDB{}], env.Values[scriptKafka{}], env.Values[scriptTB{}] = db, kafka, tb
	return nil
}

func dbOf(ts *testscript.TestScript) *tablestest.DB { return ts.Value(scriptDB{}).(*tablestest.DB) }

func kafkaOf(ts *testscript.TestScript) *processortest.Cluster {
	return ts.Value(scriptKafka{}).(*processortest.Cluster)
}

func tbOf(ts *testscript.TestScript) testing.TB { return ts.Value(scriptTB{}).(testing.TB) }

// sql FILE|STATEMENT runs statements.
func scriptSQL(ts *testscript.TestScript, _ bool, args []string) {
	text := args[0]
	if strings.HasSuffix(text, ".sql") {
		text = ts.ReadFile(text)
	}
	dbOf(ts).Exec(text)
}

// query STATEMENT prints the rows, for cmp and stdout.
func scriptQuery(ts *testscript.TestScript, _ bool, args []string) {
	out := ts.Stdout()
	if _, err := out.Write([]byte(dbOf(ts).Dump(args[0]))); err != nil {
		ts.Fatalf("%v", err)
	}
}

// until VALUE STATEMENT waits until the statement answers with the value.
func scriptUntil(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(tbOf(ts).Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := dbOf(ts).Value(args[1])
		if last == args[0] {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%s: still %s, not %s", args[1], last, args[0])
		case <-ticker.C:
		}
	}
}

// topic NAME PARTITIONS creates a topic.
func scriptTopic(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 32)
	ts.Check(err)
	kafkaOf(ts).CreateTopic(tbOf(ts), args[0], int32(n))
}

// send TOPIC PARTITION FILE sends each line of the file as a record's value.
func scriptSend(ts *testscript.TestScript, _ bool, args []string) {
	partition, err := strconv.ParseInt(args[1], 10, 32)
	ts.Check(err)
	values := strings.Split(strings.TrimSpace(ts.ReadFile(args[2])), "\n")
	kafkaOf(ts).Produce(tbOf(ts), args[0], int32(partition), processortest.Values(values...)...)
}

// putRecord is a line of a file for put.
type putRecord struct {
	Partition int32
	Key       *string
	// Value is the value as a text, Bytes in base64; without them the record is
	// a tombstone.
	Value   *string
	Bytes   []byte
	Headers [][2]string
}

// put TOPIC FILE sends a record for each line of the file, which is JSON.
func scriptPut(ts *testscript.TestScript, _ bool, args []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(ts.ReadFile(args[1])), "\n") {
		var p putRecord
		ts.Check(json.Unmarshal([]byte(line), &p))
		r := schema.Record{Value: p.Bytes}
		if p.Value != nil {
			r.Value = []byte(*p.Value)
		}
		if p.Key != nil {
			r.Key = []byte(*p.Key)
		}
		for _, h := range p.Headers {
			r.Headers = append(r.Headers, schema.Header{Key: h[0], Value: []byte(h[1])})
		}
		kafkaOf(ts).Produce(tbOf(ts), args[0], p.Partition, r)
	}
}

// seed ID TYPE FILE gives the registry a schema.
func scriptSeed(ts *testscript.TestScript, _ bool, args []string) {
	id, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := sr.Schema{Schema: ts.ReadFile(args[2])}
	ts.Check(s.Type.UnmarshalText([]byte(strings.ToUpper(args[1]))))
	ts.Value(scriptRegistry{}).(*srfake.Registry).SeedSchema("subject-"+args[0], 1, id, s)
}

// exits CODE PROGRAM ARG... runs a program that must end with the code.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code, err = exit.ExitCode(), nil
	}
	ts.Check(err)
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("it exits with %d, want %s", code, args[0])
	}
}

// holds FILE JSON NAME fails unless the file holds the value of that name.
func scriptHolds(ts *testscript.TestScript, _ bool, args []string) {
	var values map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &values))
	if want := fmt.Sprint(values[args[2]]); !strings.Contains(ts.ReadFile(args[0]), " "+want+"\n") {
		ts.Fatalf("%s does not hold %s", args[0], want)
	}
}

// signal TERM|INT sends the signal to what runs in the background.
func scriptSignal(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(signals[args[0]]))
	}
}
