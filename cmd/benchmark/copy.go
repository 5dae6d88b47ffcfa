//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// copyWorkers is how many connections copy.
const copyWorkers = 2

// runCopy copies the rows, read and encoded before, over two connections into the
// table with its primary key: one COPY each, which is as fast as it gets.
func runCopy(ctx context.Context, t target) (o outcome, err error) {
	data, rows, err := encodeAll(ctx, t)
	if err != nil {
		return o, err
	}
	conns := make([]*pgx.Conn, copyWorkers)
	for i := range conns {
		if conns[i], err = pgx.Connect(ctx, t.url); err != nil {
			return o, err
		}
		defer func() { err = errors.Join(err, conns[i].Close(context.WithoutCancel(ctx))) }()
	}
	started := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for i, conn := range conns {
		g.Go(func() error {
			_, err := conn.PgConn().CopyFrom(ctx, bytes.NewReader(data[i]), copyPayments)
			return err
		})
	}
	err = g.Wait()
	return outcome{Records: rows, Took: time.Since(started)}, err
}

// encodeAll reads the topic and encodes each payment once, in turns for each
// worker.
func encodeAll(ctx context.Context, t target) (data [copyWorkers][]byte, rows int64, err error) {
	f, err := openFeed(ctx, t, share(t.partitions, 0, 1), 0)
	if err != nil {
		return data, 0, err
	}
	defer f.client.Close()
	for i := range data {
		data[i] = []byte(copyHeader)
	}
	decode, seen := paymentDecoder(), map[[16]byte]bool{}
	err = f.read(ctx, func(_ int32, records []*kgo.Record, _ bool) error {
		for _, r := range records {
			p, err := decodePayment(ctx, decode, r)
			if err != nil {
				return err
			}
			if seen[p.id] {
				continue
			}
			seen[p.id] = true
			to := &data[rows%copyWorkers]
			if *to, err = p.appendRow(*to); err != nil {
				return err
			}
			rows++
		}
		return nil
	})
	for i := range data {
		data[i] = append(data[i], copyTrailer...)
	}
	return data, rows, err
}
