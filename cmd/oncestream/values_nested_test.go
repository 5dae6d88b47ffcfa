package main

import (
	"encoding/json"
	"strings"
	"time"

	"pgregory.net/rapid"
)

func nestedColumns() []valueColumn {
	return []valueColumn{
		{typ: "json", canon: canonJSON, draw: rapid.Map(drawJSON(3), func(v any) cell { return same(toJSON(v)) })},
		// Lists and objects are kept to the byte.
		{typ: "json ", draw: rapid.Map(drawJSON(3), func(v any) cell { return same(`{"b": [` + toJSON(v) + ` ],  "a":1.0}`) })},
		{typ: "jsonb", canon: canonJSON, draw: rapid.Map(drawJSON(3), func(v any) cell { return same(toJSON(v)) })},
		arrayOf("integer[]", rapid.Map(rapid.Int32(), func(n int32) any { return n })),
		arrayOf("text[]", rapid.Map(drawText(10), func(c cell) any { return c.want })),
		arrayOf("numeric[]", rapid.Map(drawNumber(), func(n json.Number) any { return n })),
		arrayOf("boolean[]", rapid.Map(rapid.Bool(), func(b bool) any { return b })),
		arrayOf("date[]", rapid.Map(drawMoment(), func(at time.Time) any { return at.Format(pgDate) })),
		{typ: "bigint[][]", read: "to_json(%s)::text", draw: rapid.Custom(func(rt *rapid.T) cell {
			rows, width := rapid.IntRange(1, 4).Draw(rt, "rows"), rapid.IntRange(1, 4).Draw(rt, "width")
			row := rapid.SliceOfN(rapid.Int64(), width, width)
			return same(toJSON(rapid.SliceOfN(row, rows, rows).Draw(rt, "matrix")))
		})},
	}
}

// arrayOf is a column of arrays of the elements, nulls among them.
func arrayOf(typ string, element *rapid.Generator[any]) valueColumn {
	list := rapid.SliceOfN(rapid.OneOf(rapid.Just[any](nil), element, element), 0, 6)
	return valueColumn{
		typ: typ, read: "to_json(%s)::text", canon: canonJSON,
		draw: rapid.Map(list, func(v []any) cell { return same(toJSON(v)) }),
	}
}

// drawJSON draws any value but null, nested to a depth.
func drawJSON(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(drawNumber(), func(n json.Number) any { return n }),
		rapid.Map(drawText(10), func(c cell) any { return c.want }),
	}
	if depth > 0 {
		inner := rapid.OneOf(rapid.Just[any](nil), drawJSON(depth-1))
		names := rapid.StringN(0, 5, -1).Filter(func(s string) bool { return !strings.Contains(s, "\x00") })
		kinds = append(kinds,
			rapid.Map(rapid.SliceOfN(inner, 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(names, inner, 0, 3), func(v map[string]any) any { return v }))
	}
	return rapid.OneOf(kinds...)
}

func drawNumber() *rapid.Generator[json.Number] {
	return rapid.Map(rapid.StringMatching(`-?[1-9][0-9]{0,30}(\.[0-9]{1,10})?`), func(s string) json.Number { return json.Number(s) })
}
