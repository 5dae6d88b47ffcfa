package processor_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// destination is a handler that tells another service of each message, with its
// key, and gives up on a message after some attempts.
type destination struct {
	appendSink
	url      string
	attempts int
}

// givenUp is the message's own fault.
type givenUp struct{ error }

func (givenUp) Permanent() bool { return true }

func (d destination) Apply(ctx context.Context, tx pgx.Tx, batch []schema.Message[string]) error {
	for i := range batch {
		if err := d.tell(ctx, &batch[i]); err != nil {
			return schema.AsFault(err, batch[i].Record, schema.ReasonHandler)
		}
	}
	return d.appendSink.Apply(ctx, tx, batch)
}

func (d destination) tell(ctx context.Context, m *schema.Message[string]) error {
	var last error
	for range d.attempts {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(m.Body))
		if err != nil {
			return err
		}
		r.Header.Set("Idempotency-Key", m.ID.String())
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode < 300 {
			return nil
		}
		last = fmt.Errorf("%s answers %s", d.url, answer.Status)
	}
	return givenUp{last}
}

// Proves that one message which a destination never takes stops nobody: after its
// attempts it is a dead letter, the messages behind it go on, and the other
// partition does not wait, which the destination sees to: it does not answer for
// the bad message until the other partition's are stored (case E15).
func TestDestination(t *testing.T) {
	w := newWorld(t, 2)
	var calls atomic.Int64
	others := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		body := make([]byte, 3)
		if n, _ := r.Body.Read(body); string(body[:n]) == "bad" {
			calls.Add(1)
			<-others
			answer.WriteHeader(http.StatusInternalServerError)
		}
		if r.Header.Get("Idempotency-Key") == "" {
			t.Error("a call without a key")
		}
	}))
	defer service.Close()
	w.produce(0, schema.Record{Value: []byte("good0")}, schema.Record{Value: []byte("bad")}, schema.Record{Value: []byte("good1")})
	w.produce(1, numbered("other", 20)...)
	cfg := w.config()
	cfg.Batch.MaxRecords = 1
	r := start(t, newProcessor(t, cfg, texts(processor.Sink[string](destination{url: service.URL, attempts: 3}))))
	w.waitFor(`select count(*) from appended where id like 'other%'`, "20")
	close(others)
	w.waitFor(`select sum(next_offset) from consumer_offset`, "23")
	r.finish()
	if got := w.deadLetters(); got != "1 handler - -" {
		t.Errorf("dead letters: %s", got)
	}
	if detail := w.db.Value(`select detail from dead_letter`); !strings.Contains(detail, "500 Internal Server Error") {
		t.Errorf("the dead letter says %q", detail)
	}
	if n := calls.Load(); n < 3 {
		t.Errorf("the destination was asked %d times, want at least 3", n)
	}
	w.effects(22)
}
