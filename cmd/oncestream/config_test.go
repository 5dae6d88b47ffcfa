package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// example is the pipeline file that must run as it is.
const example = `name: payments
kafka: {brokers: [127.0.0.1:9092], topic: payments, start: earliest}
postgres: {url: "${DATABASE_URL}"}
decode: {format: json}
key: {field: event_id, type: uuid}
sinks:
  - insert: {table: payments}
  - sum:    {table: customer_totals, key: {customer_id: customer_id}, add: {total: amount, payments: 1}}
`

// environment is a lookup over a map.
func environment(vars map[string]string) lookup {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// load loads text as the file payments.yaml.
func load(t *testing.T, text string, flags, env map[string]string) (*config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "payments.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadConfig(path, flags, environment(env))
}

// The example gives what it says, and every default that the table names.
func TestConfigExample(t *testing.T) {
	c, err := load(t, example, nil, map[string]string{"DATABASE_URL": "postgres://db/app"})
	if err != nil {
		t.Fatal(err)
	}
	want := processor.Config{
		Group: "payments",
		Kafka: processor.Kafka{
			Brokers: []string{"127.0.0.1:9092"}, Topic: "payments", Start: processor.Start{At: "earliest"},
			GroupProtocol: "classic", Balancer: "cooperative-sticky", InstanceID: "auto", SessionTimeout: 6 * time.Second,
		},
		Postgres: processor.Postgres{
			URL: "postgres://db/app", Schema: "oncestream", Concurrency: 4,
			TransactionTimeout: time.Minute, IdleTimeout: 10 * time.Second, LockTimeout: 2 * time.Second,
		},
		Batch:        processor.Batch{MaxRecords: 5000, MaxBytes: 8 << 20, MaxWait: 10 * time.Millisecond},
		DrainTimeout: 10 * time.Second,
		StuckAfter:   time.Minute,
		Keys:         processor.Keys{PurgeEvery: time.Minute},
		Policy: processor.Policy{
			OnError: processor.DeadLetter, OnKeyReuse: processor.DeadLetter,
			MaxDeadLetterRate: 0.5, DeadLetterWindow: 1000, MaxDeadLetterValue: 1 << 20,
		},
	}
	if diff := cmp.Diff(want, c.engine, cmpopts.IgnoreFields(processor.Config{}, "Hooks")); diff != "" {
		t.Error(diff)
	}
	one := &schema.Value{Kind: schema.Number, Raw: []byte("1")}
	sinks := []sinkConfig{
		{kind: "insert", path: "sinks[0].insert", table: "payments"},
		{
			kind: "sum", path: "sinks[1].sum", table: "customer_totals",
			key: columns{{name: "customer_id", field: "customer_id"}},
			add: columns{{name: "total", field: "amount"}, {name: "payments", value: one}},
		},
	}
	if diff := cmp.Diff(sinks, c.sinks, cmp.AllowUnexported(sinkConfig{}, ledgerConfig{}, sqlConfig{}, column{})); diff != "" {
		t.Error(diff)
	}
	if c.handler != "payments" || c.key.field != "event_id" || c.key.kind != "uuid" {
		t.Errorf("handler %q, key %+v", c.handler, c.key)
	}
}

// The example that compose.yaml runs is a good file.
func TestConfigExampleFile(t *testing.T) {
	c, err := loadConfig("example/payments.yaml", nil, environment(map[string]string{"DATABASE_URL": "postgres://db/app"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.name != "payments" || len(c.sinks) != 2 || c.engine.Postgres.URL != "postgres://db/app" {
		t.Errorf("got %+v", c)
	}
}

// Each wrong file gives its faults: all of them, with line, path, rule, value
// and the nearest right name.
func TestConfigFaults(t *testing.T) {
	replace := func(old, with string) string {
		if !strings.Contains(example, old) {
			t.Fatalf("the example has no %q", old)
		}
		return strings.Replace(example, old, with, 1)
	}
	const block = "name: p\nkafka:\n  brokers: [a:1]\n  topic: t\n  start: earliest\npostgres: {url: x}\nkey: {field: id}\nsinks:\n- sum:\n    table: totals\n    key: [customer]\n    ad: {total: amount}\n"
	for _, test := range []struct{ name, text, want string }{
		{"unknown field", replace("topic: payments", "topc: payments"), `
payments.yaml:2: kafka.topc: unknown field (did you mean topic?)
payments.yaml:2: kafka.topic: is required (here, or by --topic or ONCESTREAM_TOPIC)`},
		{"unknown field of a sink", block, `
payments.yaml:9: sinks[0].sum.add: is required
payments.yaml:12: sinks[0].sum.ad: unknown field (did you mean add?)`},
		{"nothing near", replace("name:", "zzzzzzz: 1\nname:"), `
payments.yaml:1: zzzzzzz: unknown field (there are batch, constraint_wait, dead_letter_window, decode, drain_timeout, environment, fingerprint, guard, handler, http, kafka, key, keys, max_dead_letter_rate, max_dead_letter_value, name, on_duplicate, on_error, on_key_reuse, postgres, sinks, stuck_after, watch)`},
		{"unknown sink", replace("- insert:", "- inset:"), `
payments.yaml:7: sinks[0].inset: unknown kind of sink (did you mean insert?)`},
		{"two kinds in one item", replace("- insert: {table: payments}", "- {insert: {table: a}, upsert: {table: b}}"), `
payments.yaml:7: sinks[0]: must be a mapping of one kind of sink, as in insert: {table: payments} (got 2 of them)`},
		{"choices", replace("format: json", "format: xml"), `
payments.yaml:4: decode.format: must be json, avro or protobuf (got "xml")`},
		{"no registry", replace("format: json", "format: avro"), `
payments.yaml:4: decode.registry.url: is required (here, or by ONCESTREAM_REGISTRY_URL): avro is read by its schema`},
		{"registry", replace("format: json", "format: avro, registry: {url: 'ftp://r', user: u, token: t}"), `
payments.yaml:4: decode.registry: URL: an address such as https://registry:8081 is needed (got "ftp://r")
payments.yaml:4: decode.registry: Token and User are both given; one of them authenticates`},
		{"number", replace("decode:", "batch: {max_records: lots, max_wait: 5, max_bytes: 8 MB}\ndecode:"), `
payments.yaml:4: batch.max_records: must be a whole number (got "lots")
payments.yaml:4: batch.max_wait: must be a duration such as 10s (got "5")
payments.yaml:4: batch.max_bytes: must be a size such as 8MiB (got "8 MB")`},
		{"zero", replace("decode:", "batch: {max_records: 0}\ndecode:"), `
payments.yaml:4: batch.max_records: must be positive (got "0")`},
		{"text that is a number", replace("name: payments", "name: 12"), `
payments.yaml:1: name: must be a text: put it in quotes (got "12")`},
		{"start", replace("start: earliest", "start: begin"), `
payments.yaml:2: kafka.start: must be earliest, latest or a time (got "begin")`},
		{"no start", replace(", start: earliest", ""), `
payments.yaml:2: kafka.start: is required (here, or by --start or ONCESTREAM_START)`},
		{"list", replace("[127.0.0.1:9092]", "127.0.0.1:9092"), `
payments.yaml:2: kafka.brokers: must be a list, as in [a, b] (got "127.0.0.1:9092")`},
		{"empty list", replace("[127.0.0.1:9092]", "[]"), `
payments.yaml:2: kafka.brokers: is required and empty`},
		{"nothing", replace("{format: json}", ""), `
payments.yaml:4: decode: must be a mapping (got nothing)`},
		{"no key", replace("key: {field: event_id, type: uuid}\n", ""), `
payments.yaml:1: key: is required: one of field, header, record_key, position and join`},
		{"two keys", replace("field: event_id", "field: event_id, header: id"), `
payments.yaml:5: key: one of field, header, record_key, position and join (got field and header)`},
		{"position as uuid", replace("field: event_id", "position: true"), `
payments.yaml:5: key.type: neither several fields nor a position is a UUID: leave the type out`},
		{"number as key column", replace("key: {customer_id: customer_id}", "key: {customer_id: 5}"), `
payments.yaml:8: sinks[1].sum.key.customer_id: must be a field (got 5)`},
		{"float", replace("payments: 1}", "payments: 1.5}"), `
payments.yaml:8: sinks[1].sum.add.payments: must be a text (got "1.5")`},
		{"policies", replace("decode:", "on_error: parc\non_key_reuse: park\non_duplicate: 1\nmax_dead_letter_rate: 50\ndecode:"), `
payments.yaml:4: on_error: must be dead_letter, halt or park (got "parc")
payments.yaml:5: on_key_reuse: must be dead_letter, ignore or halt (got "park")
payments.yaml:6: on_duplicate: must be a text: put it in quotes (got "1")
payments.yaml:7: max_dead_letter_rate: must lie above 0 and not above 1 (got "50")`},
		{"fingerprint", replace("decode:", "fingerprint: payload\ndecode:"), `
payments.yaml:4: fingerprint: must be value, none or {fields: [...]} (got "payload")`},
		{"fingerprint of fields", replace("decode:", "fingerprint: {feilds: [a]}\ndecode:"), `
payments.yaml:4: fingerprint.feilds: unknown field (did you mean fields?)
payments.yaml:4: fingerprint.fields: is required`},
		{"fingerprint of the position", replace("decode:", "fingerprint: {fields: [a, $offset]}\ndecode:"), `
payments.yaml:4: fingerprint.fields: fields[1] is $offset, which differs for each copy of a message`},
		{"sources of a column", replace("payments: 1}", "a: {feild: x}, b: {field: x, value: 1}, c: {}, i: {field: x, as: 5}, d: {value: 0x10}, e: {value: [1]}, f: {expr: 1}, g: {field: x, type: int}, h: [x]}"), `
payments.yaml:8: sinks[1].sum.add.a.feild: unknown field (did you mean field?)
payments.yaml:8: sinks[1].sum.add.b: must have one of field, value and expr (got 2 of them)
payments.yaml:8: sinks[1].sum.add.c: must have one of field, value and expr (got 0 of them)
payments.yaml:8: sinks[1].sum.add.i.as: must be a text (got "5")
payments.yaml:8: sinks[1].sum.add.d.value: must be a decimal number as JSON has them, or a text in quotes (got 0x10)
payments.yaml:8: sinks[1].sum.add.e.value: must be a text, a number, true, false or null (got a list)
payments.yaml:8: sinks[1].sum.add.f.expr: must be a text: put it in quotes (got "1")
payments.yaml:8: sinks[1].sum.add.h: must be a text (got a list)
payments.yaml:8: sinks[1].sum.add.g.type: is for the parameters of sql: a column has the type that its table gives it`},
		{"ledger and sql", replace("- insert: {table: payments}", "- ledger: {accounts: a, entries: e, from: 7, to: [x], amount: amount}\n  - sql: {params: {id: id}, rows: one}"), `
payments.yaml:7: sinks[0].ledger.to: must be a text (got a list)
payments.yaml:7: sinks[0].ledger.currency: is required
payments.yaml:8: sinks[1].sql.rows: must be each or any (got "one")
payments.yaml:8: sinks[1].sql.statement: is required`},
		{"on_conflict", replace("insert: {table: payments}", "insert: {table: payments, on_conflict: skip}"), `
payments.yaml:7: sinks[0].insert.on_conflict: must be duplicate, error or ignore (got "skip")`},
		{"unset variable", replace("${DATABASE_URL}", "${DATABASE}"), `
payments.yaml:3: postgres.url: the environment variable DATABASE is not set`},
		{"open variable", replace("${DATABASE_URL}", "${DATABASE"), `
payments.yaml:3: postgres.url: "${DATABASE" is no variable: write ${NAME}, or $$ for a dollar sign`},
		{"name twice", replace("decode:", "name: again\ndecode:"), `
payments.yaml:4: not valid YAML: mapping key "name" already defined at [1:1]`},
		{"no yaml", "name: [", `
payments.yaml:1: not valid YAML: sequence end token ']' not found`},
		{"two documents", example + "---\nname: other\n", `
payments.yaml:10: a second document: one file is one pipeline`},
		{"sign-in", replace("start: earliest", "start: earliest, sasl: {user: u}"), `
payments.yaml:2: kafka.sasl.mechanism: is required where there is a user`},
		{"certificate", replace("start: earliest", "start: earliest, tls: {ca: nowhere.pem}"), `
payments.yaml:2: kafka.tls.ca: open nowhere.pem: no such file or directory`},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The variable that the example uses, by which it is not overridden.
			text := strings.Replace(test.text, "${DATABASE_URL}", "${MAIN_DATABASE}", 1)
			_, err := load(t, text, nil, map[string]string{"MAIN_DATABASE": "postgres://db/app"})
			if err == nil {
				t.Fatal("no fault")
			}
			if diff := cmp.Diff(strings.TrimSpace(test.want), err.Error()); diff != "" {
				t.Error(diff)
			}
			if !isUsage(err) {
				t.Error("a fault of the file must be told from a fault of the run")
			}
		})
	}
}

// An empty file names everything that is required, once.
func TestConfigEmpty(t *testing.T) {
	_, err := load(t, "", nil, nil)
	want := `payments.yaml:1: the file is empty
payments.yaml:1: name: is required
payments.yaml:1: kafka.brokers: is required (here, or by --brokers or KAFKA_BROKERS)
payments.yaml:1: kafka.topic: is required (here, or by --topic or ONCESTREAM_TOPIC)
payments.yaml:1: kafka.start: is required (here, or by --start or ONCESTREAM_START)
payments.yaml:1: postgres.url: is required (here, or by --database-url or DATABASE_URL)
payments.yaml:1: sinks: is required
payments.yaml:1: key: is required: one of field, header, record_key, position and join`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// Flags go over the environment, the environment over the file; a variable in
// a field that is overridden need not be set.
func TestConfigPrecedence(t *testing.T) {
	file := strings.Replace(example, "${DATABASE_URL}", "${NOWHERE}", 1)
	env := map[string]string{"KAFKA_BROKERS": "b1:1, b2:2", "DATABASE_URL": "env", "ONCESTREAM_INSTANCE_ID": "env-7", "ONCESTREAM_CONCURRENCY": "9"}
	c, err := load(t, file, map[string]string{"database-url": "flag", "start": "latest"}, env)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.engine.Kafka.Brokers, c.engine.Postgres.URL, c.engine.Kafka.InstanceID, c.engine.Kafka.Start.At, c.engine.Postgres.Concurrency}
	want := []any{[]string{"b1:1", "b2:2"}, "flag", "env-7", "latest", 9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is wrong with a flag or a variable is said of the flag or the variable.
func TestConfigOverrideFaults(t *testing.T) {
	_, err := load(t, example, map[string]string{"start": "soon"}, map[string]string{"DATABASE_URL": "x", "ONCESTREAM_CONCURRENCY": "many"})
	want := "--start: kafka.start: must be earliest, latest or a time (got \"soon\")\n" +
		"ONCESTREAM_CONCURRENCY: postgres.concurrency: must be a whole number (got \"many\")"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// Two dollar signs are one, a single one is itself, and a secret's value is in
// no message.
func TestConfigExpand(t *testing.T) {
	file := strings.Replace(example, "start: earliest", `start: earliest, sasl: {mechanism: PLAIN, user: "a$b$${c}", password: "${P}!"}`, 1)
	env := map[string]string{"DATABASE_URL": "x", "P": "se$cret"}
	c, err := load(t, file, nil, env)
	if err != nil {
		t.Fatal(err)
	}
	sasl := c.engine.Kafka.SASL
	if sasl.User != "a$b${c}" || sasl.Password != "se$cret!" {
		t.Errorf("got %+v", sasl)
	}
	bad := strings.Replace(file, `"${P}!"`, "12345", 1)
	if _, err := load(t, bad, nil, env); err == nil || strings.Contains(err.Error(), "12345") {
		t.Errorf("the message shows a secret: %v", err)
	}
}

// Encryption is on where tls is there, even when it is empty.
func TestConfigTLS(t *testing.T) {
	env := map[string]string{"DATABASE_URL": "x"}
	for file, want := range map[string]bool{
		example: false,
		strings.Replace(example, "start: earliest", "start: earliest, tls: {}", 1): true,
	} {
		c, err := load(t, file, nil, env)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.engine.Kafka.TLS != nil; got != want {
			t.Errorf("encrypted is %v, want %v", got, want)
		}
	}
}
