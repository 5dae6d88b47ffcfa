//go:build unix

package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/oncestream/oncestream/schema"
)

// ceilingTables are the ledger's tables again, as far as the hot path writes
// them: the ceiling has no claim to write the ledger's own.
const ceilingTables = `
create schema ceiling;
create table ceiling.position (
  partition integer primary key, next_offset bigint not null, records bigint not null default 0,
  updated_at timestamptz not null default now()
) with (fillfactor = 50);
insert into ceiling.position select n, 0 from generate_series(0, 1023) as n;
create table ceiling.key (like oncestream.processed_message including all);
`

// batchSize is the product's default.
const batchSize = 5000

// ceilingWorkers is how many connections there are.
const ceilingWorkers = 2

// load is what one transaction writes.
type load struct {
	partition int32
	from, to  int64
	payments  []payment
}

// runCeiling does what must be done and nothing else: two workers, each with a
// client for its half of the partitions and a connection.
func runCeiling(ctx context.Context, t target) (outcome, error) {
	workers := make([]*ceilingWorker, ceilingWorkers)
	for i := range workers {
		w, err := newCeilingWorker(ctx, t, share(t.partitions, i, ceilingWorkers))
		if err != nil {
			return outcome{}, err
		}
		defer w.close()
		workers[i] = w
	}
	started := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		g.Go(func() error { return w.read(ctx) })
		g.Go(func() error { return w.write(ctx) })
	}
	err := g.Wait()
	o := outcome{Took: time.Since(started)}
	for _, w := range workers {
		o.Records += w.written
	}
	return o, err
}

type ceilingWorker struct {
	feed    *feed
	decode  schema.Decoder[schema.Row]
	pending map[int32]*load
	// loads hands over one batch while the next one is decoded.
	loads   chan *load
	writer  *writer
	written int64
}

func newCeilingWorker(ctx context.Context, t target, partitions []int32) (*ceilingWorker, error) {
	f, err := openFeed(ctx, t, partitions, 0)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, t.url)
	if err != nil {
		f.client.Close()
		return nil, err
	}
	w := &ceilingWorker{feed: f, decode: paymentDecoder(), pending: map[int32]*load{}, loads: make(chan *load, 1)}
	w.writer, err = newWriter(ctx, conn)
	return w, err
}

func (w *ceilingWorker) close() {
	w.feed.client.Close()
	_ = w.writer.conn.Close(context.Background())
}

// read fetches and decodes. It ends loads, which write waits for.
func (w *ceilingWorker) read(ctx context.Context) error {
	defer close(w.loads)
	return w.feed.read(ctx, func(partition int32, records []*kgo.Record, last bool) error {
		for i, r := range records {
			if err := w.add(ctx, partition, r, last && i == len(records)-1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *ceilingWorker) add(ctx context.Context, partition int32, r *kgo.Record, last bool) error {
	l := w.pending[partition]
	if l == nil {
		l = &load{partition: partition, from: r.Offset, payments: make([]payment, 0, batchSize)}
		w.pending[partition] = l
	}
	p, err := decodePayment(ctx, w.decode, r)
	if err != nil {
		return err
	}
	l.payments, l.to = append(l.payments, p), r.Offset+1
	if len(l.payments) < batchSize && !last {
		return nil
	}
	delete(w.pending, partition)
	select {
	case w.loads <- l:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *ceilingWorker) write(ctx context.Context) error {
	for l := range w.loads {
		if err := w.writer.write(ctx, l); err != nil {
			return err
		}
		w.written += int64(len(l.payments))
	}
	return nil
}
