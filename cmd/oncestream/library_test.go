package main_test

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// Example_library is the README's example of the library: what stands between
// the two marks is copied there, so that it always compiles.
func Example_library() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// begin
	type Payment struct {
		ID       string `json:"event_id"`
		Customer int64  `json:"customer_id"`
		Cents    int64  `json:"cents"`
	}
	p, err := processor.New(processor.Config{
		Group:    "payments",
		Kafka:    processor.Kafka{Brokers: []string{"127.0.0.1:9092"}, Topic: "payments", Start: processor.Start{At: "earliest"}},
		Postgres: processor.Postgres{URL: os.Getenv("DATABASE_URL")},
	}, processor.Pipeline[Payment]{
		Decode: schema.JSON[Payment](),
		Key:    schema.ByValue(func(m schema.Message[Payment]) string { return m.Body.ID }),
		Sink: sinks.Each(func(ctx context.Context, tx pgx.Tx, m schema.Message[Payment]) error {
			_, err := tx.Exec(ctx, "update account set cents = cents - $2 where customer_id = $1", m.Body.Customer, m.Body.Cents)
			return err
		}),
	})
	if err == nil {
		err = p.Run(ctx) // until ctx ends
	}
	// end
	log.Print(err)
}
