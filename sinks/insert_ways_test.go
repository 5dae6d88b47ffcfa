package sinks

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

var waysFields = schema.NewFields("id", "account", "amount", "currency", "paid", "at")

// waysBatch are payments of about 200 bytes, each of a random uuid.
func waysBatch(tb testing.TB, n int) []schema.Message[schema.Row] {
	decode := schema.Rows(waysFields)
	out := make([]schema.Message[schema.Row], n)
	for i := range out {
		var id [16]byte
		_, _ = rand.Read(id[:])
		r := &schema.Record{Topic: "t", Offset: int64(i), Value: fmt.Appendf(nil,
			`{"id":"%x-%x-%x-%x-%x","account":"customer-%04d","amount":%d.25,"currency":"EUR","paid":true,"at":"2026-01-02T03:04:05.678901Z"}`,
			id[:4], id[4:6], id[6:8], id[8:10], id[10:], i%10000, i%1000)}
		body, err := decode(tb.Context(), r)
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = schema.Message[schema.Row]{Record: r, Body: body}
	}
	return out
}

// BenchmarkInsertWays puts COPY beside the insert from arrays, turn by turn into
// one table with a random uuid as primary key, and tells the ratio of the server's
// CPU (where its processes can be looked at) and of the time. The figures of
// copy.go are from it.
func BenchmarkInsertWays(b *testing.B) {
	db := waysTable(b)
	for _, size := range []int{1, 5, 10, 20, 50, 200, 1000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			byCopy, byArrays := newWay(b, db), newWay(b, db)
			byCopy.plan.fewest, byArrays.plan.copyable = 1, false
			for range b.N {
				byCopy.write(b, waysBatch(b, size))
				byArrays.write(b, waysBatch(b, size))
			}
			b.ReportMetric(0, "ns/op")
			rows := float64(b.N*size) * 1000
			b.ReportMetric(float64(byCopy.cpu)/rows, "copy-cpu-us/row")
			b.ReportMetric(float64(byArrays.cpu)/rows, "insert-cpu-us/row")
			b.ReportMetric(float64(byCopy.cpu)/float64(max(byArrays.cpu, 1)), "cpu-ratio")
			b.ReportMetric(float64(byCopy.took)/float64(byArrays.took), "time-ratio")
		})
	}
}

// BenchmarkInsertEncode measures what comes before the statement: the conversion
// of a row of six columns, into the stream of a COPY and into arrays.
func BenchmarkInsertEncode(b *testing.B) {
	w := newWay(b, waysTable(b))
	messages := waysBatch(b, 5000)
	for name, copying := range map[string]bool{"copy": true, "arrays": false} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := w.plan.memory.Get().(*insertMemory)
				m.rows.reset()
				m.rows.copying = copying
				if err := gather(messages, func(place int, msg *schema.Message[schema.Row]) error { return w.plan.add(m, place, msg) }); err != nil {
					b.Fatal(err)
				}
				w.plan.memory.Put(m)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(messages)), "ns/row")
		})
	}
}

func waysTable(b *testing.B) *tablestest.DB {
	db := tablestest.New(b)
	db.Exec(`create table payment (id uuid primary key, account text not null, amount numeric(12,2) not null, currency text, paid boolean, at timestamptz)`)
	return db
}

// way is an insert on a connection of its own.
type way struct {
	conn      *pgx.Conn
	sink      *Insert[schema.Row]
	plan      *insertPlan[schema.Row]
	cpu, took time.Duration // of all batches, without BEGIN and COMMIT
}

func newWay(b *testing.B, db *tablestest.DB) *way {
	b.Helper()
	conn, err := db.Pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Release)
	sink := &Insert[schema.Row]{Table: "payment", Fields: waysFields}
	if err := sink.Prepare(b.Context(), conn.Conn()); err != nil {
		b.Fatal(err)
	}
	return &way{conn: conn.Conn(), sink: sink, plan: sink.plan.Load()}
}

func (w *way) write(b *testing.B, messages []schema.Message[schema.Row]) {
	b.Helper()
	err := pgx.BeginFunc(b.Context(), w.conn, func(tx pgx.Tx) error {
		started, used := time.Now(), cpuOf(w.conn)
		err := w.sink.Apply(b.Context(), tx, messages)
		w.took += time.Since(started)
		w.cpu += cpuOf(w.conn) - used
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// cpuOf is the time that the connection's server process has run, 0 where it is
// not of this machine.
func cpuOf(conn *pgx.Conn) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", conn.PgConn().PID()))
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	ns, _ := strconv.ParseInt(string(first), 10, 64)
	return time.Duration(ns)
}
