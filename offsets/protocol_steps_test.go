package offsets_test

import "fmt"

// protocolStep is what may happen in a state, and what comes of it.
type protocolStep struct {
	name string
	// fault says that it is no part of a run in which nothing goes wrong.
	fault     bool
	to        protocolState
	violation string
}

// steps are all that may happen in a state.
type steps struct {
	from     protocolState
	sabotage sabotage
	all      []protocolStep
}

func stepsFrom(from protocolState, broken sabotage) []protocolStep {
	s := &steps{from: from, sabotage: broken}
	for m := range from.members {
		s.claim(m)
		s.begin(m, 1)
		s.begin(m, 2)
		s.commit(m)
		s.reclaim(m)
		s.watch(m)
		s.giveUp(m)
		s.server(m)
		s.crash(m)
	}
	s.operator()
	return s.all
}

// add adds a step; do changes a copy of the state.
func (s *steps) add(name string, fault bool, do func(*protocolState) string) {
	to := s.from
	violation := do(&to)
	if violation == "" {
		violation = to.check()
	}
	s.all = append(s.all, protocolStep{name, fault, to, violation})
}

func step(name string, m int) string { return fmt.Sprintf("%s %c", name, 'A'+m) }

// claim waits for the row and takes it, whoever has it.
func (s *steps) claim(m int) {
	me := s.from.members[m]
	if s.sabotage.staleClaim && me.phase == idle {
		s.add(step("reads the position:", m), false, func(to *protocolState) string {
			to.members[m].phase, to.members[m].next = reading, to.row.next
			return ""
		})
		return
	}
	if me.phase != idle && me.phase != reading || s.from.locked() || s.from.left.claims == 0 {
		return
	}
	s.add(step("claim", m), false, func(to *protocolState) string {
		to.left.claims--
		to.row.epoch++
		if s.sabotage.kafkaFirst {
			to.row.next = to.kafka
		}
		next := to.row.next
		if me.phase == reading {
			next = me.next
		}
		to.members[m].phase, to.members[m].epoch, to.members[m].next = holding, to.row.epoch, next
		return ""
	})
}

// begin is the batch transaction up to its COMMIT.
func (s *steps) begin(m int, records int8) {
	me := s.from.members[m]
	if me.phase != holding || me.tx.phase != none || me.next+records > protocolEnd || s.from.locked() {
		return
	}
	ours := s.from.row.epoch == me.epoch && (s.sabotage.noOffset || s.from.row.next == me.next)
	if !ours && !s.sabotage.noRowCount {
		if records == 1 {
			s.add(step(s.why(me), m), false, func(to *protocolState) string {
				to.members[m] = protocolMember{}
				return ""
			})
		}
		return
	}
	t := s.batch(me.next, records)
	if t.advanced = ours; s.from.waits(m, t.keys) {
		return
	}
	s.add(step(fmt.Sprintf("begin %d:", records), m), false, func(to *protocolState) string {
		s.apart(to, &t)
		to.members[m].tx = t
		return ""
	})
}

// why tells what a worker learns whose advance has matched nothing.
func (s *steps) why(me protocolMember) string {
	switch row := s.from.row; {
	case row.epoch > me.epoch:
		return "fenced:"
	case row.epoch < me.epoch || row.next < me.next:
		return "back:"
	}
	return "fenced by another holder of the epoch:"
}

// batch is the transaction that passes records: the keys that are new, and their
// effects.
func (s *steps) batch(from, records int8) protocolTx {
	t := protocolTx{phase: open, from: from, to: from + records}
	for _, key := range protocolKeys[from:t.to] {
		known := (s.from.row.keys|t.keys)&(1<<key) != 0
		if !known || s.sabotage.admitIgnored {
			t.effects[key]++
		}
		if !known {
			t.keys |= 1 << key
		}
	}
	return t
}

// apart commits at once what a sabotage keeps in transactions of their own.
func (s *steps) apart(to *protocolState, t *protocolTx) {
	if s.sabotage.kafkaFirst {
		to.kafka = t.to
	}
	if s.sabotage.keysApart {
		to.row.keys |= t.keys
		t.keys = 0
	}
	if s.sabotage.offsetOutsideOfTx && t.advanced {
		to.row.next, t.from, t.advanced = t.to, t.to, false
	}
	if s.sabotage.effectsOutsideOfTx {
		for k := range t.effects {
			to.row.effects[k] += t.effects[k]
		}
		t.effects = [2]int8{}
	}
}

// commit is COMMIT with each of its outcomes, and a transaction that fails.
func (s *steps) commit(m int) {
	me := s.from.members[m]
	if me.tx.phase != open {
		return
	}
	passed := me.tx.to
	s.add(step("commit", m), false, func(to *protocolState) string {
		to.members[m].next = passed
		return to.commit(m)
	})
	s.add(step("rollback", m), true, func(to *protocolState) string {
		to.members[m].tx = protocolTx{}
		if s.sabotage.movedBeforeAnswer {
			to.members[m].next = passed
		}
		return ""
	})
	if s.from.left.losses == 0 {
		return
	}
	for name, outcome := range map[string]func(*protocolState) string{
		"commit, no answer:": func(to *protocolState) string { return to.commit(m) },
		"abort, no answer:":  func(to *protocolState) string { to.members[m].tx = protocolTx{}; return "" },
		"no answer yet:":     func(to *protocolState) string { to.members[m].tx.phase = inFlight; return "" },
	} {
		s.add(step(name, m), true, func(to *protocolState) string {
			to.left.losses--
			violation := outcome(to)
			s.unanswered(&to.members[m], passed)
			return violation
		})
	}
}

// unanswered is what a member makes of a COMMIT without an answer.
func (s *steps) unanswered(me *protocolMember, passed int8) {
	switch {
	case s.sabotage.errorIsAbort:
	case s.sabotage.errorIsCommit, s.sabotage.movedBeforeAnswer:
		me.next = passed
	default:
		me.phase = unknown
	}
}

// reclaim finds out what became of a COMMIT: it waits for the row first.
func (s *steps) reclaim(m int) {
	me := s.from.members[m]
	if me.phase != unknown || s.from.locked() {
		return
	}
	found := "found aborted:"
	if s.from.row.next > me.next {
		found = "found committed:"
	}
	if s.from.row.epoch != me.epoch {
		found = "reclaim fenced:"
	}
	s.add(step(found, m), false, func(to *protocolState) string {
		if to.row.epoch != me.epoch {
			to.members[m] = protocolMember{tx: me.tx}
			return ""
		}
		to.row.epoch++
		to.members[m].phase, to.members[m].epoch, to.members[m].next = holding, to.row.epoch, to.row.next
		return ""
	})
}

// watch is the look of a member that has nothing to do.
func (s *steps) watch(m int) {
	me := s.from.members[m]
	if s.sabotage.unwatched || me.phase != holding || me.tx.phase != none || me.next < protocolEnd || s.from.row.epoch == me.epoch && s.from.row.next == me.next {
		return
	}
	s.add(step("watched:", m), false, func(to *protocolState) string {
		to.members[m] = protocolMember{}
		return ""
	})
}

// giveUp is a member that lets its claim go, as for a successor, and only then
// passes what it has in hand.
func (s *steps) giveUp(m int) {
	if !s.sabotage.givenUpEarly || s.from.left.givenUp == 0 || s.from.members[m].phase != holding || s.from.locked() {
		return
	}
	s.add(step("gives up:", m), false, func(to *protocolState) string {
		to.left.givenUp--
		to.row.epoch++
		return ""
	})
}

// server is what PostgreSQL does with transactions that nobody waits for.
func (s *steps) server(m int) {
	phase := s.from.members[m].tx.phase
	if phase == inFlight {
		s.add(step("server commits:", m), false, func(to *protocolState) string { return to.commit(m) })
	}
	if phase == inFlight || phase == orphan {
		s.add(step("server aborts:", m), false, func(to *protocolState) string { to.members[m].tx = protocolTx{}; return "" })
	}
}

// crash is kill -9.
func (s *steps) crash(m int) {
	if s.from.left.crashes == 0 || s.from.members[m].phase == idle {
		return
	}
	s.add(step("crash", m), true, func(to *protocolState) string {
		to.left.crashes--
		t := to.members[m].tx
		if t.phase == open {
			t.phase = orphan
		}
		to.members[m] = protocolMember{tx: t}
		return ""
	})
}

// operator is what people do: rewind, back up, restore.
func (s *steps) operator() {
	if s.from.left.rewinds > 0 && s.from.row.next > 0 && !s.from.locked() {
		s.add("rewind", true, func(to *protocolState) string {
			to.left.rewinds--
			to.row.epoch, to.row.next, to.kafka = to.row.epoch+1, 0, 0
			return ""
		})
	}
	if !s.from.saved && s.from.left.restores > 0 {
		s.add("backup", true, func(to *protocolState) string {
			to.saved, to.backup = true, to.row
			return ""
		})
	}
	if s.from.saved && s.from.left.restores > 0 {
		s.add("restore", true, func(to *protocolState) string {
			to.left.restores--
			to.row, to.backup, to.saved = to.backup, protocolRow{}, false
			for m := range to.members {
				to.members[m].tx = protocolTx{}
			}
			return ""
		})
	}
}
