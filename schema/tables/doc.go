// Package tables is the contract with the database: the ledger's tables and
// their version, a digest of a table that does not depend on the order of its
// rows, copies of tables and their comparison, and decimals in PostgreSQL's own
// binary form.
//
// # Version
//
// The tables live in a schema of their own. [Migrate] brings them up to the
// version this program knows, and only upwards: a migration that is released is
// never changed, and none is undone. [Check], at the start of a program, refuses
// any other version, older or newer, since a program that guesses at columns
// would lose data on the hour of its first deployment.
//
// # Digest
//
// Two tables that hold the same rows have the same [Digest], whatever the order
// in which transactions wrote them. It is how a replay proves that it changed
// nothing.
//
// # Copies
//
// [CopyStructure] makes empty copies of tables in a scratch schema, so that a
// pipeline can be run beside the live tables, and [Diff] says how the rows of two
// tables differ. [DropSchema] drops only what was marked as scratch.
//
// # Numbers
//
// [AppendNumeric] and [AppendNumericText] write the binary form of numeric with
// each digit and the scale that was sent, [DecodeNumeric] reads it. Nothing is
// ever rounded: what numeric cannot hold is an error.
package tables
