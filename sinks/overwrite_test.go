package sinks_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// Proves which sinks could overwrite newer state with a message that is handled
// late: those that set or delete and are not told what is newer, also within
// others.
func TestOverwrites(t *testing.T) {
	type row = schema.Row
	plain, versioned := &sinks.Upsert[row]{}, &sinks.Upsert[row]{Version: "v"}
	own := sinks.Each(func(context.Context, pgx.Tx, schema.Message[row]) error { return nil })
	for _, tt := range []struct {
		name string
		sink interface{ Overwrites() bool }
		want bool
	}{
		{"upsert", plain, true},
		{"upsert with a version", versioned, false},
		{"delete", &sinks.Delete[row]{}, true},
		{"tee of what adds", sinks.Tee[row](&sinks.Insert[row]{}, &sinks.Sum[row]{}, versioned, own), false},
		{"tee with an upsert", sinks.Tee[row](&sinks.Insert[row]{}, plain), true},
		{"refresh", sinks.Refresh[row](plain, 0), true},
		{"where", sinks.Where[row](plain, sinks.Predicate[row]{}), true},
	} {
		if got := tt.sink.Overwrites(); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
