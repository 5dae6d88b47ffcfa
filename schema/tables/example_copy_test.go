package tables_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// A copy has the structure of its table and none of its rows; then the two can
// be compared.
func ExampleCopyStructure() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn, err := pgx.Connect(ctx, server.URL(""))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create table total (customer text primary key, amount numeric not null); insert into total values ('ann', 12.50)"); err != nil {
		log.Fatal(err)
	}

	copied, err := tables.CopyStructure(ctx, conn, "scratch", tables.CopyOptions{Tables: []tables.Name{{Table: "total"}}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "insert into scratch.total values ('ann', 12.5), ('bob', 3)"); err != nil {
		log.Fatal(err)
	}
	d, err := tables.Diff(ctx, conn, copied.Tables[0].To, copied.Tables[0].From, tables.DiffOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
	for _, row := range d.Examples {
		fmt.Println(row.Kind, *row.Key[0].Value)
	}
	fmt.Println("dropped:", tables.DropSchema(ctx, conn, "scratch"))
	// Output:
	// "public"."total": 1 missing, 0 extra, 1 different
	// different ann
	// missing bob
	// dropped: <nil>
}
