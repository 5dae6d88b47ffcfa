package embedded_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// What was committed is there after all processes were killed.
func ExampleServer_Kill() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	run := func(sql string) (answer string) {
		conn, err := pgx.Connect(ctx, server.URL(""))
		if err != nil {
			log.Fatal(err)
		}
		defer conn.Close(ctx)
		if err := conn.QueryRow(ctx, sql).Scan(&answer); err != nil {
			log.Fatal(err)
		}
		return answer
	}

	run("select lo_from_bytea(42, 'committed')::text")
	if err := server.Kill(); err != nil {
		log.Fatal(err)
	}
	if err := server.Restart(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run("select convert_from(lo_get(42), 'UTF8')"))
	// Output: committed
}
