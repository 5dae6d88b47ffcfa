package processor

import (
	"context"
	"sync"
	"time"

	"github.com/oncestream/oncestream/schema"
)

// chunk is what one poll brought for a partition: its records, and the offset
// after it. Transaction markers and gaps move end without a record, so a chunk
// may be empty and still move the position.
type chunk struct {
	records     []schema.Record
	end         int64
	leaderEpoch int32
	bytes       int
	arrived     time.Time // paces batches only; nothing else depends on it
}

// queue holds the chunks between the poll loop, which must never wait, and the
// worker of one partition. It is closed until the worker's claim is in place
// and the source reads from it: what is pushed before is of no known position
// and is dropped.
type queue struct {
	limit Batch

	mu      sync.Mutex
	open    bool
	next    int64 // the offset that the next record must have at least
	chunks  []chunk
	records int
	bytes   int
	err     error // why nothing comes after the chunks
	// changed is closed and replaced at each change, so that a waiter can
	// select on it beside its context.
	changed chan struct{}
}

func newQueue(limit Batch) *queue {
	return &queue{limit: limit, changed: make(chan struct{})}
}

func (q *queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// openAt empties the queue and lets records from next on in.
func (q *queue) openAt(next int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clear()
	q.open, q.next = true, next
}

// shut empties the queue and lets nothing in.
func (q *queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.clear()
	q.open = false
}

func (q *queue) clear() {
	q.chunks, q.records, q.bytes, q.err = nil, 0, 0, nil
	q.signal()
}

// push adds what was polled. It drops records that lie before the position
// (the client may hand over an offset twice), and reports how many, and
// whether the source should pause the partition: the queue is closed or holds
// enough for the batches in work.
func (q *queue) push(c chunk) (dropped int, pause bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open || q.err != nil {
		return 0, true
	}
	for dropped < len(c.records) && c.records[dropped].Offset < q.next {
		c.bytes -= size(&c.records[dropped])
		dropped++
	}
	c.records = c.records[dropped:]
	if c.end <= q.next {
		return dropped, q.full()
	}
	q.next = c.end
	q.chunks = append(q.chunks, c)
	q.records += len(c.records)
	q.bytes += c.bytes
	q.signal()
	return dropped, q.full()
}

// fail makes take answer err once all that came before it is taken.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open && q.err == nil {
		q.err = err
		q.signal()
	}
}

// full: one batch beside the two that the worker holds, one that commits and one
// that is ready.
func (q *queue) full() bool {
	return q.records >= q.limit.MaxRecords || q.bytes >= q.limit.MaxBytes
}

// roomy reports whether a paused partition should be read again.
func (q *queue) roomy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open && q.records <= q.limit.MaxRecords/2 && q.bytes <= q.limit.MaxBytes/2
}

// size returns the bytes that the queue holds.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// take waits for records and answers with the chunks of one batch. It returns
// early with the context's error, or with fail's when nothing is left.
func (q *queue) take(ctx context.Context) ([]chunk, error) {
	for {
		q.mu.Lock()
		changed := q.changed
		wait := q.wait()
		if wait <= 0 {
			chunks, err := q.cut()
			q.mu.Unlock()
			return chunks, err
		}
		q.mu.Unlock()
		if err := await(ctx, changed, wait); err != nil {
			return nil, err
		}
	}
}

// forever is longer than any wait for a signal.
const forever = 24 * time.Hour

// wait is how long the batch at the head may still grow: not at all when it is
// full or nothing can follow.
func (q *queue) wait() time.Duration {
	switch {
	case q.err != nil, q.records >= q.limit.MaxRecords, q.bytes >= q.limit.MaxBytes:
		return 0
	case len(q.chunks) == 0:
		return forever
	}
	return q.limit.MaxWait - time.Since(q.chunks[0].arrived)
}

func await(ctx context.Context, changed <-chan struct{}, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// cut takes the head off the queue, up to a batch.
func (q *queue) cut() ([]chunk, error) {
	if len(q.chunks) == 0 {
		return nil, q.err
	}
	var head []chunk
	records, bytes := 0, 0
	for len(q.chunks) > 0 && records < q.limit.MaxRecords && bytes < q.limit.MaxBytes {
		c := q.chunks[0]
		if n := q.fits(c, q.limit.MaxRecords-records, q.limit.MaxBytes-bytes); n < len(c.records) {
			c, q.chunks[0] = c.split(n)
		} else {
			q.chunks[0] = chunk{}
			q.chunks = q.chunks[1:]
		}
		records += len(c.records)
		bytes += c.bytes
		head = append(head, c)
	}
	q.records -= records
	q.bytes -= bytes
	return head, nil
}

// fits returns how many records of c go into what is left of a batch, at least
// one.
func (q *queue) fits(c chunk, records, bytes int) int {
	if c.bytes <= bytes {
		return min(records, len(c.records))
	}
	n := 0
	for n < min(records, len(c.records)) && (n == 0 || bytes > 0) {
		bytes -= size(&c.records[n])
		n++
	}
	return n
}

// split cuts c behind its first n records.
func (c chunk) split(n int) (head, tail chunk) {
	head, tail = c, c
	head.records, tail.records = c.records[:n:n], c.records[n:]
	last := &head.records[n-1]
	head.end, head.leaderEpoch = last.Offset+1, last.LeaderEpoch
	head.bytes = 0
	for i := range head.records {
		head.bytes += size(&head.records[i])
	}
	tail.bytes = c.bytes - head.bytes
	return head, tail
}

// size is what a record counts against a bound in bytes.
func size(r *schema.Record) int {
	n := len(r.Key) + len(r.Value) + recordOverhead
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// recordOverhead is about what a record takes beside its bytes.
const recordOverhead = 200
