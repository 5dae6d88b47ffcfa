// Package sinks writes the effects of messages to PostgreSQL, inside a
// transaction that belongs to the engine.
//
//	Insert   appends a row for each message; a unique constraint can tell duplicates
//	Upsert   sets the row of a key; the last message of the key wins, or the newest
//	Delete   deletes the rows of a key
//	Sum      adds to totals, exactly
//	Ledger   transfers amounts between accounts, by double entry
//	SQL      runs a statement of one's own over the batch, as a relation
//	Each     calls a function for each message, with the transaction
//	Batch    calls a function for the whole batch
//	Tee      does several of these in one transaction
//	Where    lets a sink see only the messages that match
//	Refresh  lets a sink see that its table was altered
//
// A column's value comes from a field or the record ([Field]), from a Go body
// ([Col]), from an expression ([Computed]) or is constant ([Constant]).
//
// # What every sink keeps to
//
// A sink can run again on the same batch, since transactions are tried again: it
// keeps nothing of a batch in the process and makes no call outside of the
// transaction. Commit and rollback are not its business. It is used by several
// workers at once.
//
// The ready-made sinks send one statement for a batch and set of columns, or a
// fixed number of them, never one for each row: a parameter is an array of all
// values of a column, so that a batch may have any size. Rows that are only
// appended, and many, go by COPY. The rows of a statement that may meet the rows of
// another worker are sorted by key. Names are always quoted and taken as they
// are, values are always parameters.
//
// # Prepare
//
// The ready-made sinks look at their table once before the first batch, and
// again after it was altered. What is wrong with the configuration is then said
// at the start, all of it, with the name that was probably meant.
//
// # Faults
//
// A value that does not fit its column is the message's own fault: the sink
// returns a [*schema.Fault] that names record, field and column, without asking
// PostgreSQL. Nothing is rounded, cut or guessed on the way. The faults of all
// messages of a batch come at once, as [schema.Faults], and the batch then has no
// effect, so that the engine applies the others with one more run. What PostgreSQL
// refuses is returned with its *pgconn.PgError inside, to be told by SQLSTATE;
// under a [schema.FirstTry] it names the message where PostgreSQL names the row.
//
// # Outcomes
//
// A sink that has something to say of a message is a Reporter of package
// processor: ApplyReport has the effects of Apply, and answers with a
// [schema.Outcome] for each message, or with none at all, which is the usual case.
//
//	Duplicate   Insert: the row was there; the sinks behind it in a Tee do not see the message
//	Stale       Upsert with a Version: the row is newer, and was left alone
//	Result      EachResult: what the function has answered, for duplicates to be given
//
// # Twice
//
// What protects an effect from a second time is first the idempotency key. What
// would become of the effect without it is a sink's [Kind]:
//
//	set-state     Upsert, Delete                            twice is once
//	insert-once   Insert, on_conflict duplicate or ignore   a unique constraint refuses the second
//	accumulate    Insert, on_conflict error; Sum; Ledger    only the key protects it
//	opaque        SQL, Each, Batch, sinks of users          not known
//
// # Missing, null, tombstone
//
//	         missing field                  null field   tombstone
//	Insert   the column's default           null         fault
//	Upsert   merge: the column stays;       null         deletes, is ignored,
//	         replace: the column's default               or a fault, as set
//	Delete   fault                          fault        deletes by the record key
//	Sum      fault                          fault        fault
//	Ledger   fault                          fault        fault
//	SQL      null                           null         fault, unless all is of the record
//
// In an expression a missing field reads as null, as do all fields of a tombstone.
// A value that the column cannot do without is a fault in every sink; so is a
// missing or null part of a key, or of the version of an Upsert.
//
// # How a value becomes a column's
//
// Every digit that was sent arrives, or the message is at fault. [Rules] has the
// rule of each type; what JSON cannot tell, such as the unit of an epoch or that a
// text is base64, is declared by one of the [Conversions].
//
// A domain is treated as its base type; PostgreSQL checks the domain.
package sinks
