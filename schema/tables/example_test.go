package tables_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema/tables"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// A program checks at its start; "oncestream migrate up" does what it asks for.
func ExampleCheck() {
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

	err = tables.Check(ctx, conn, "oncestream")
	if v, ok := errors.AsType[*tables.VersionError](err); ok {
		fmt.Println("have version", v.Have)
	}
	applied, err := tables.Migrate(ctx, conn.Config(), "oncestream")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("applied", applied[0].Name)
	fmt.Println("now:", tables.Check(ctx, conn, "oncestream"))

	digest, err := tables.Digest(ctx, conn, tables.Name{Schema: "oncestream", Table: "dead_letter"},
		tables.DigestOptions{Exclude: []string{"created_at"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("dead letters:", digest.Rows)
	// Output:
	// have version 0
	// applied 00001_ledger.sql
	// now: <nil>
	// dead letters: 0
}

// The scale that was sent is kept, and what would be rounded is refused.
func ExampleAppendNumericText() {
	b, err := tables.AppendNumericText(nil, []byte("-12.340"))
	if err != nil {
		log.Fatal(err)
	}
	d, err := tables.DecodeNumeric(b)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x is %s\n", b, d)
	_, err = tables.AppendNumericText(nil, []byte("1e-20000"))
	fmt.Println(err)
	// Output:
	// 0002000040000003000c0d48 is -12.340
	// tables: 20000 digits after the decimal point: outside the range of numeric
}
