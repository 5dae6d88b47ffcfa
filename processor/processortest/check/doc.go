// Package check judges a run: from a history of what was in the log, what the
// database has, what was done to them and when, it says which invariants held.
// It knows nothing of how the run was made, and asks no server: a history that
// was kept as a file can be judged again at any time, by a newer judge too.
//
// # The workload that it judges
//
// Each record is a transfer of an amount from one account to another, with an
// identity, an entity and the entity's sequence number; the record key is the
// entity. A good record has four effects in one transaction:
//
//	appended   one row, with the record's position; the table has no unique key,
//	           so that a second effect shows
//	balances   minus the amount at one account, plus at the other
//	counters   one more, and the amount, for the entity
//	order      the rows of an entity that came by one partition have rising offsets
//
// A producer may send a record again, anywhere: the same identity has its effects
// once. A poison record has none, and is a dead letter.
//
// # The invariants
//
//	I1   no record that was passed lacks its effect, or its dead letter
//	I2   no identity has two effects
//	I3   money is moved and never made: the balances of a currency add up to 0
//	I4   the transactions of a partition form one chain without a gap, and each
//	     effect was written by the one that has passed its record
//	I5   the effects of an entity come in the order of the log
//	I6   the tables are what a fold over the log says, computed here, outside SQL
//	I7   records read = effects + duplicates + dead letters, and what the operator left out
//	I8   after the faults have healed everything is handled within a limit
//	I10  each COMMIT without an answer was found out about
//	I11  each poison record is one dead letter, with the right reason
//	I12  what must halt has halted with its reason, and was then left alone
//
// I9, of what is done outside of the database, has no subject here: no sink does
// anything there.
package check
