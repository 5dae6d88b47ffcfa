//go:build unix

package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// insertPayment is what one writes who knows that messages come again.
const insertPayment = `insert into payments (event_id, customer_id, amount, currency, method, created_at)
values ($1, $2, $3, $4, $5, $6) on conflict do nothing`

// naivePayment is the message for encoding/json.
type naivePayment struct {
	EventID    string      `json:"event_id"`
	CustomerID int64       `json:"customer_id"`
	Amount     json.Number `json:"amount"`
	Currency   string      `json:"currency"`
	Method     string      `json:"method"`
	CreatedAt  time.Time   `json:"created_at"`
}

// runNaive runs a loop for each partition, with a transaction for each message.
func runNaive(ctx context.Context, t target) (outcome, error) {
	cfg, err := pgxpool.ParseConfig(t.url)
	if err != nil {
		return outcome{}, err
	}
	cfg.MaxConns = int32(t.partitions) //nolint:gosec // a topic has not that many
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return outcome{}, err
	}
	defer pool.Close()
	feeds := make([]*feed, t.partitions)
	for i := range feeds {
		most := int64(max(1, t.records/t.partitions))
		if feeds[i], err = openFeed(ctx, t, share(t.partitions, i, t.partitions), most); err != nil {
			return outcome{}, err
		}
		defer feeds[i].client.Close()
	}
	var o outcome
	for _, f := range feeds {
		for _, n := range f.left {
			o.Records += n
		}
	}
	started := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range feeds {
		g.Go(func() error { return naiveLoop(ctx, pool, f) })
	}
	err = g.Wait()
	o.Took = time.Since(started)
	return o, err
}

func naiveLoop(ctx context.Context, pool *pgxpool.Pool, f *feed) error {
	return f.read(ctx, func(_ int32, records []*kgo.Record, _ bool) error {
		for _, r := range records {
			var p naivePayment
			if err := json.Unmarshal(r.Value, &p); err != nil {
				return err
			}
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insertPayment, p.EventID, p.CustomerID, string(p.Amount), p.Currency, p.Method, p.CreatedAt)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
