package check

// chain follows the transactions and the changes of each partition, which the
// history has in their order.
func (l *log) chain(v *Verdict) {
	l.writers(v)
	next := map[int32]int64{}
	for _, p := range l.Positions {
		next[p.Partition] = p.First
	}
	changes := map[int32][]Change{}
	for _, c := range l.Changes {
		if c.From != c.To { // else the chain does not show when it was
			changes[c.Partition] = append(changes[c.Partition], c)
		}
	}
	for _, p := range l.Passes {
		v.Checked++
		for rest := changes[p.Partition]; p.From != next[p.Partition] && len(rest) > 0 && rest[0].From == next[p.Partition]; rest = changes[p.Partition] {
			next[p.Partition], changes[p.Partition] = rest[0].To, rest[1:]
		}
		if p.From != next[p.Partition] || p.To <= p.From {
			v.violate("partition %d: a transaction of %s in epoch %d passed [%d, %d), expected to begin at %d", p.Partition, p.Owner, p.Epoch, p.From, p.To, next[p.Partition])
		}
		next[p.Partition] = p.To
	}
	for _, p := range l.Positions {
		for _, c := range changes[p.Partition] {
			next[p.Partition] = c.To
		}
		if next[p.Partition] != p.Next {
			v.violate("partition %d: the chain ends at %d, the stored offset is %d", p.Partition, next[p.Partition], p.Next)
		}
	}
}

// writers looks for effects that were not written by the transaction which passed
// their offset: with the chain alone, who writes effects and passes nothing would
// not be seen. A number of a transaction is there once, also in a database that
// was put back and gives it again: the rows of the first one are gone.
func (l *log) writers(v *Verdict) {
	passed := map[string]Pass{}
	for _, p := range l.Passes {
		if before, ok := passed[p.Tx]; ok && p.Tx != "" {
			v.violate("partition %d: one transaction has passed [%d, %d) and [%d, %d) of partition %d", p.Partition, p.From, p.To, before.From, before.To, before.Partition)
		}
		passed[p.Tx] = p
	}
	for _, a := range l.Appended {
		if a.Tx == "" {
			continue
		}
		v.Checked++
		at := a.at()
		switch p, ok := passed[a.Tx]; {
		case !ok:
			v.violate("%s: the effect of %s was written by a transaction that has passed nothing", at, a.ID)
		case p.Partition != a.Partition || a.Offset < p.From || a.Offset >= p.To:
			v.violate("%s: the effect of %s was written by the transaction that has passed [%d, %d) of partition %d", at, a.ID, p.From, p.To, p.Partition)
		}
	}
}
