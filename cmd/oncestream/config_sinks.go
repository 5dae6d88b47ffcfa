package main

import "github.com/oncestream/oncestream/schema"

// sinkConfig is one item of sinks: one kind, and its fields.
type sinkConfig struct {
	kind  string
	path  string // "sinks[1].sum"
	where string // an expression, empty for all messages
	table string
	// columns are the columns to write, nil for all that the table has. key
	// are those that name a row, add those that are summed up.
	columns, key, add columns
	mode, tombstone   string // of an upsert
	version           string // of an upsert: a column
	onConflict        string // of an insert
	ledger            ledgerConfig
	sql               sqlConfig
}

// ledgerConfig are the fields of a ledger.
type ledgerConfig struct {
	accounts, entries          string
	from, to, amount, currency column
	nonNegative                bool
	overdraft                  []string
}

// sqlConfig are the fields of a statement.
type sqlConfig struct {
	statement, rows string
	params          columns
}

// columns maps columns of a table to fields of the message, in the file's order.
type columns []column

// column is a column and where its value is from: one of a field, an expression,
// and a value that is the same for each message.
type column struct {
	name, field, expr string
	value             *schema.Value
	as                conversions
	// typ is the type of a parameter of a statement.
	typ string
}

// conversions are the names of conversions, one after the other.
type conversions []string
