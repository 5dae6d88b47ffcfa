package offsets

import "strings"

// Statement is one of the ledger's statements, for the golden file.
type Statement struct{ Name, SQL string }

// Statements returns every statement, in the order of a partition's life.
func Statements(schema string) []Statement {
	s := newStatements(schema)
	return []Statement{
		{"find handler", s.findHandler},
		{"add handler", s.addHandler},
		{"started", s.started},
		{"start", s.start},
		{"claim", s.claim},
		{"identity", s.identity},
		{"advance", s.advance},
		{"look", s.look},
		{"admit", s.admit},
		{"admit advanced", s.admitAdvanced},
		{"find", s.find[findLate]},
		{"copy", s.copy},
		{"account", s.account},
		{"reclaim", s.reclaim},
		{"release", s.release},
		{"halt", s.halt},
		{"holder", s.holder},
		{"terminate", sqlTerminate},
		{"progress", s.progress},
		{"purge turn", s.purgeTurn},
		{"purge", s.purge},
		{"purge next", s.purgeNext},
		{"floors", s.floors},
		{"find key", s.findKey},
		{"key sizes", s.keySizes},
		{"key sample", s.keySample},
		{"standing", s.standing},
		{"standing locked", s.standingLocked},
		{"patience", sqlPatience},
		{"change", s.change},
		{"changes", s.changes},
		{"moves", s.moves},
		{"environment", s.environment},
		{"environment locked", s.environmentLocked},
		{"label", s.label},
		{"relabel", s.relabel},
		{"note label", s.noteLabel},
		{"labels", s.labels},
		{"oldest transaction", s.oldestTransaction},
	}
}

// The sabotages break the protocol as it could be broken by a careless change,
// so that the checkers can be seen to fail. The letters are those by which the
// faults are known elsewhere in the project.

// SabotageOffsetCondition (b) advances without a look at the old offset.
func (l *Ledger) SabotageOffsetCondition() {
	replace(&l.sql.advance, "next_offset = $5", "$5::bigint is not null")
}

// SabotageRowCount (c) has every advance report one row, whether it moved or not.
func (l *Ledger) SabotageRowCount() {
	l.sql.advance = "with moved as (" + l.sql.advance + ") select 1"
}

// SabotageInsertResult (e) takes every key for inserted. The look is blind, too:
// it would tell the duplicates of the batches before.
func (l *Ledger) SabotageInsertResult() {
	l.BlindLook()
	for _, s := range []*string{&l.sql.admit, &l.sql.admitAdvanced} {
		replace(s, "do nothing", "(key, handler) do update set processed_at = now()")
	}
}

// BlindLook has the look before a copy find nothing. It is no sabotage: the look
// is a shortcut, and the copy is refused instead.
func (l *Ledger) BlindLook() {
	for i := range l.sql.known {
		replace(&l.sql.known[i], "where ", "where false and ")
	}
}

// SabotageIdentity (h) claims a topic by its name only.
func (l *Ledger) SabotageIdentity() {
	replace(&l.sql.claim, "where o.topic_id = excluded.topic_id and o.cluster_id = excluded.cluster_id", "")
}

// SabotageKeyScope (k) remembers keys by partition, with the trigger KeysByPartition.
func (l *Ledger) SabotageKeyScope() {
	l.BlindLook()
	for i := range l.sql.find {
		replace(&l.sql.find[i], "handler = $2", "handler / 100 = $2")
	}
}

// KeysByPartition has each partition write its keys under a handler of its own.
const KeysByPartition = `
create function by_partition() returns trigger language plpgsql as $$
begin
  new.handler := new.handler * 100 + new.partition;
  return new;
end $$;
create trigger by_partition before insert on processed_message for each row execute function by_partition();`

// replace fails loudly where the text has changed: a sabotage that does nothing
// would prove nothing.
func replace(sql *string, old, by string) {
	if !strings.Contains(*sql, old) {
		panic("there is no " + old + " in " + *sql)
	}
	*sql = strings.Replace(*sql, old, by, 1)
}

// The bounds of a listing's pages.
const (
	PageLetters = pageLetters
	PageBytes   = pageBytes
)
