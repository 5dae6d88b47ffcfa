package main

// sinkKind describes a kind of sink.
type sinkKind struct {
	name, doc string
	fields    func(s *sinkConfig) []field
}

func sinkKinds() []sinkKind {
	return []sinkKind{
		{"insert", "One row for each message.", withWhere(insertFields)},
		{"upsert", "The last message of a key is the state of its row.", withWhere(upsertFields)},
		{"delete", "Each message deletes the rows of its key.", withWhere(deleteFields)},
		{"sum", "One row for each key that adds up, exact to the last digit.", withWhere(sumFields)},
		{
			"ledger", "Accounts by double entry: each message is a transfer, which appends two entries and changes two balances. `go doc " +
				"github.com/oncestream/oncestream/sinks.Ledger` shows the tables that it needs.", withWhere(ledgerFields),
		},
		{"sql", "A statement of your own, run once for a batch.", withWhere(sqlFields)},
	}
}

// withWhere adds the field that all kinds have.
func withWhere(fields func(*sinkConfig) []field) func(*sinkConfig) []field {
	return func(s *sinkConfig) []field {
		return append(fields(s), field{
			path: "where", value: &s.where, noDefault: "all messages",
			doc: "An expression that is true for the messages that this sink sees, such as `status == \"paid\" and amount > 0`. The others are done with: their key is remembered.",
		})
	}
}

const columnsDoc = "The columns to write: a map from column to its source, or a list of columns whose fields have the same name."

func tableField(s *sinkConfig) field {
	return field{path: "table", value: &s.table, required: true, doc: "The table, `name` or `schema.name`."}
}

func insertFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "columns", value: &s.columns, noDefault: "every column that has a field of its name", doc: columnsDoc},
		{
			path: "on_conflict", value: &s.onConflict, noDefault: "`duplicate` where the table has a unique index on exactly the columns of the key, else `error`",
			choices: []string{"duplicate", "error", "ignore"},
			doc:     "What a row means that a unique index refuses. `duplicate`: where the row that is met has the message's key, its effect is there already; any other row makes an error. `error`: the message is at fault, with the constraint's name. `ignore`: it counts as a duplicate, whatever the index.",
		},
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
		{
			path: "version", value: &s.version, noDefault: "the message that comes last wins",
			doc: "The column, among those written, that orders the states of a row: a message whose version is older than the row's leaves it alone. It is for keys that come from several partitions, and lets a dead letter be replayed late.",
		},
	}
}

func deleteFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "key", value: &s.key, required: true, doc: "The columns by which rows are found, and their fields: a map or a list. They need no unique constraint. The key of a tombstone is the record key, or pseudo-fields such as `$key`."},
	}
}

func sumFields(s *sinkConfig) []field {
	return []field{
		tableField(s),
		{path: "key", value: &s.key, required: true, doc: "The columns that name the row, and their fields: a map or a list. They need a unique constraint."},
		{path: "add", value: &s.add, required: true, doc: "The columns to add to: a map from column to its source, or to a whole number that each message adds."},
	}
}

func ledgerFields(s *sinkConfig) []field {
	l := &s.ledger
	return []field{
		{path: "accounts", value: &l.accounts, required: true, doc: "The table of the balances, with the columns account, currency and balance."},
		{path: "entries", value: &l.entries, required: true, doc: "The table of the entries, which are only ever appended."},
		{path: "from", value: &l.from, required: true, doc: "The account that the amount goes from."},
		{path: "to", value: &l.to, required: true, doc: "The account that it goes to."},
		{path: "amount", value: &l.amount, required: true, doc: "The amount, above zero."},
		{path: "currency", value: &l.currency, required: true, doc: "What it is counted in. Balances of two currencies never mix. `{value: EUR}` where there is one only."},
		{path: "non_negative", value: &l.nonNegative, def: "false", doc: "Whether a transfer that the account cannot pay is at fault (`insufficient_funds`)."},
		{path: "overdraft", value: &l.overdraft, noDefault: "none", doc: "The accounts that may be below zero nevertheless, such as `[world]`."},
	}
}

func sqlFields(s *sinkConfig) []field {
	q := &s.sql
	return []field{
		{path: "statement", value: &q.statement, required: true, doc: "One statement, which reads the messages of a batch from the relation `message`: `update stock set n = stock.n - m.n from message m where stock.sku = m.sku`. Values never become part of its text."},
		{path: "params", value: &q.params, required: true, doc: "The columns of that relation: a map from name to source, with the SQL `type` where it is not text: `{n: {field: quantity, type: int}}`."},
		{path: "rows", value: &q.rows, def: "each", choices: []string{"each", "any"}, doc: "How many rows it must affect: `each`, exactly one for each message, or `any` number."},
	}
}
