package main

// sinkKind describes a kind of sink.
type sinkKind struct {
	name, doc string
	fields    func(s *sinkConfig) []field
}

func sinkKinds() []sinkKind {
	return []sinkKind{
		{"insert", "One row for each message.", insertFields},
		{"upsert", "The last message of a key is the state of its row.", upsertFields},
		{"sum", "One row for each key that adds up, exact to the last digit.", sumFields},
	}
}

const columnsDoc = "The columns to write: a map from column to field, or a list of columns whose fields have the same name. " +
	"A field is a path such as `a.b`, or one of `$key`, `$topic`, `$partition`, `$offset`, `$time` and `$header.NAME` of the record."

func tableField(s *sinkConfig) field {
	return field{path: "table", value: &s.table, required: true, doc: "The table, `name` or `schema.name`."}
}

func insertFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "columns", value: &s.columns, noDefault: "every column that has a field of its name", doc: columnsDoc},
	}
}

func upsertFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "key", value: &s.key, required: true, doc: "The columns that name the row, and their fields: a map or a list as for `columns`. They need a unique constraint. A tombstone has no fields: its key is the record key, or pseudo-fields such as `$key`."},
		{path: "columns", value: &s.columns, noDefault: "every column that has a field of its name", doc: columnsDoc},
		{
			path: "mode", value: &s.mode, def: "merge", choices: []string{"merge", "replace"},
			doc: "What happens to a column whose field is missing, where the row is there: `merge` leaves it as it is, `replace` sets it to its default.",
		},
		{
			path: "tombstone", value: &s.tombstone, def: "delete", choices: []string{"delete", "ignore", "error"},
			doc: "What a record without a value does to the row of its key: `delete` it, `ignore` the record, or `error`: the message is at fault, see `on_error`.",
		},
	}
}

func sumFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "key", value: &s.key, required: true, doc: "The columns that name the row, and their fields: a map or a list. They need a unique constraint."},
		{path: "add", value: &s.add, required: true, doc: "The columns to add to: a map from column to a field, or to a whole number that each message adds."},
	}
}
