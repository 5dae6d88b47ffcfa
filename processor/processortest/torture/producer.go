package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/processor/processortest/check"
)

// producer sends the workload at its rate: most of it record by record, and some
// in Kafka transactions, of which a part is aborted.
type producer struct {
	kafka *kafka
	rate  int

	// gate is held, for reading, while records are sent; who holds it for writing
	// has the log for himself.
	gate    sync.RWMutex
	clients [2]*kgo.Client // one plain, one transactional

	mu       sync.Mutex // guards what follows
	workload *workload
	poison   map[string]string // the reason of a poison payload
	failed   error             // the first

	sent, aborted atomic.Int64
}

func newProducer(k *kafka, o Options) *producer {
	return &producer{kafka: k, rate: o.Rate, workload: newWorkload(o.Seed, o.Partitions), poison: map[string]string{}}
}

const (
	produceEvery     = 20 * time.Millisecond
	transactionEvery = 500 * time.Millisecond
	transactionSize  = 20
)

// open connects, and close disconnects.
func (p *producer) open() (err error) {
	if p.clients[0], err = p.kafka.client(); err == nil {
		p.clients[1], err = p.kafka.client(kgo.TransactionalID("torture"), kgo.TransactionTimeout(30*time.Second))
	}
	return err
}

func (p *producer) close() {
	for _, c := range p.clients {
		if c != nil {
			c.Close()
		}
	}
}

// run sends until ctx ends, and then waits for what is under way.
func (p *producer) run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { p.every(ctx, produceEvery, func() { p.some(ctx) }) })
	both.Go(func() { p.every(ctx, transactionEvery, func() { p.note(p.transaction(ctx)) }) })
	both.Wait()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	p.note(p.clients[0].Flush(flush))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return fmt.Errorf("torture: produce: %w", p.failed)
	}
	return nil
}

// use has the workload go to so many partitions, once the clients know of them.
func (p *producer) use(ctx context.Context, w *world, partitions int) error {
	err := w.until(ctx, patience, "the producer to see the new partition", func(context.Context) (bool, error) {
		for _, c := range p.clients {
			c.ForceMetadataRefresh()
			if leader, _, err := c.PartitionLeader(topic, int32(partitions-1)); err != nil || leader < 0 {
				return false, nil //nolint:nilerr // it is asked again
			}
		}
		return true, nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.workload.partitions = partitions
	}
	return err
}

// hold waits until all that was sent is in the log, and has nothing sent until
// release is called.
func (p *producer) hold(ctx context.Context) (release func(), err error) {
	p.gate.Lock()
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.clients[0].Flush(limited); err != nil {
		p.gate.Unlock()
		return nil, fmt.Errorf("the producer's records are not in the log: %w", err)
	}
	return p.gate.Unlock, nil
}

// reopen connects anew, while the producer is held: to a client a topic that was
// created again is one that has lost its records.
func (p *producer) reopen() error {
	p.close()
	return p.open()
}

func (p *producer) every(ctx context.Context, pause time.Duration, do func()) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// note keeps the first failure. What a broker that is away refuses is sent again
// by the client; what is noted here was given up.
func (p *producer) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
}

// some sends what is due in one tick.
func (p *producer) some(ctx context.Context) {
	p.gate.RLock()
	defer p.gate.RUnlock()
	client := p.clients[0]
	for range max(1, p.rate*int(produceEvery)/int(time.Second)) {
		r, payload := p.next()
		client.TryProduce(context.WithoutCancel(ctx), p.record(r, payload), func(_ *kgo.Record, err error) {
			if errors.Is(err, kgo.ErrMaxBuffered) {
				return // the broker has been away for long: there is a backlog enough
			}
			p.sent.Add(1)
			p.note(err)
		})
	}
}

// transaction sends some records that become visible together, or never. Those of
// a transaction that is aborted are no part of the workload.
func (p *producer) transaction(ctx context.Context) error {
	p.gate.RLock()
	defer p.gate.RUnlock()
	client := p.clients[1]
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	abort := p.decide()
	for n := range transactionSize {
		r, payload := p.next()
		if abort {
			payload = fmt.Appendf(nil, `{"id":"aborted %d","entity":"aborted"}`, n)
		}
		client.Produce(ctx, p.record(r, payload), nil)
	}
	err := client.Flush(ctx)
	end := kgo.TryCommit
	if abort || err != nil {
		end = kgo.TryAbort
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if endErr := client.EndTransaction(finish, end); endErr != nil {
		return errors.Join(err, endErr)
	}
	if abort {
		p.aborted.Add(transactionSize)
	} else if err == nil {
		p.sent.Add(transactionSize)
	}
	return err
}

// next takes a record from the workload, which remembers poison by its payload.
func (p *producer) next() (check.Record, []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, payload := p.workload.next()
	if r.Poison != "" {
		p.poison[string(payload)] = r.Poison
	}
	return r, payload
}

// partitions is how many partitions the workload goes to.
func (p *producer) partitions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workload.partitions
}

// decide is whether a transaction is aborted: three of ten are.
func (p *producer) decide() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workload.dice.IntN(10) < 3
}

func (p *producer) record(r check.Record, payload []byte) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: r.Partition, Key: []byte(r.Entity), Value: payload}
}
