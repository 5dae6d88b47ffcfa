package processor

import (
	"fmt"
	"strings"

	"github.com/oncestream/oncestream/schema/tables"
)

// VerifyOptions say how thorough a verification is, and what it leaves out.
type VerifyOptions struct {
	// Records is how many offsets of the topic are verified where the Range does
	// not say it: the last ones, shared among the partitions. Defaults to 10,000.
	Records int64
	// MaxBytes bounds the records, which are kept in memory. A range that holds
	// more is refused. Defaults to 256 MiB.
	MaxBytes int
	// Sample is the share of the keys that are verified, above 0 and up to 1. It
	// takes whole keys: of a key that it has, no record is missing.
	// Defaults to 1.
	Sample float64
	// Tables are those that the pipeline writes to, as "table" or "schema.table":
	// they are copied, without their rows. Small tables that their foreign keys
	// refer to are copied with their rows. Defaults to all tables of the search
	// path but the ledger's.
	Tables []string
	// WithRows are copied with their rows, because effects depend on what is in
	// them. Defaults to none.
	WithRows []string
	// Exclude are columns, as "table.column", that may differ: they are not
	// compared, and listed in the verdict. Defaults to none.
	Exclude []string
	// OncePerPosition says that the producer never sends a message twice, so that
	// nothing is claimed of a message that comes at another position.
	// Defaults to false.
	OncePerPosition bool
	// Order also asks for the same effects when records of different record keys
	// come in another order. Defaults to false.
	Order bool
	// Seed decides what is drawn by lot. Defaults to 1.
	Seed uint64
	// Progress, if set, is told now and then how many records are done of all
	// that will be, counting each time that a record is handled.
	Progress func(done, total int64)
}

const (
	defaultVerifyRecords = 10_000
	defaultVerifyBytes   = 256 << 20
)

func (o VerifyOptions) withDefaults() (VerifyOptions, error) {
	fill(&o.Records, defaultVerifyRecords)
	fill(&o.MaxBytes, defaultVerifyBytes)
	fill(&o.Sample, 1)
	fill(&o.Seed, 1)
	if o.Records < 0 || o.MaxBytes < 0 || o.Sample < 0 || o.Sample > 1 {
		return o, fmt.Errorf("processor: verify: Records and MaxBytes must be positive, Sample between 0 and 1 (got %d, %d, %g)", o.Records, o.MaxBytes, o.Sample)
	}
	for _, e := range o.Exclude {
		if table, column, ok := strings.Cut(e, "."); !ok || table == "" || column == "" || strings.Contains(column, ".") {
			return o, fmt.Errorf("processor: verify: Exclude: want table.column, without the table's schema (got %q)", e)
		}
	}
	return o, nil
}

func (o VerifyOptions) copies() tables.CopyOptions {
	return tables.CopyOptions{Tables: tableNames(o.Tables), Rows: tableNames(o.WithRows)}
}

func tableNames(texts []string) []tables.Name {
	var names []tables.Name
	for _, text := range texts {
		n := tables.Name{Table: text}
		if s, t, ok := strings.Cut(text, "."); ok {
			n = tables.Name{Schema: s, Table: t}
		}
		names = append(names, n)
	}
	return names
}
