package sinks

import (
	"github.com/oncestream/oncestream/schema"
)

// move makes the transfers in their order, those of messages at fault excepted.
func (p *ledgerPlan[T]) move(m *ledgerMemory, batch []schema.Message[T]) error {
	var faults schema.Faults
	for i := range m.transfers {
		t := &m.transfers[i]
		from, to := &m.balances[t.from], &m.balances[t.to]
		t.pay(from, to)
		if f := p.judge(m, t); f != nil {
			f.Record = batch[t.place].Record
			faults = append(faults, f)
			t.pay(to, from)
		}
	}
	return faults.AsError()
}

// pay takes the amount from one balance and adds it to the other.
func (t *transfer) pay(from, to *balance) {
	d := t.amount
	to.add(t.literal, &d)
	d.neg = true
	from.add(t.literal, &d)
}

// judge says what is wrong with the two balances after the transfer.
func (p *ledgerPlan[T]) judge(m *ledgerMemory, t *transfer) *schema.Fault {
	from := &m.balances[t.from]
	if !from.overdraft && from.negative() {
		f := schema.Faultf(nil, schema.ReasonFunds, "the account lacks %s of it", from.appendText(nil)[1:])
		f.Field, f.Column = p.entry.columns[ledgerAmount].Field, "balance"
		return f
	}
	for _, b := range []*balance{from, &m.balances[t.to]} {
		m.key = b.appendText(m.key[:0])
		if _, err := summand(&p.account[2].TableColumn, schema.Value{Kind: schema.Number, Raw: m.key}); err != nil {
			return schema.AsFault(blame(err, nil, p.entry.columns[ledgerAmount].Field, "balance"), nil, schema.ReasonValueRange)
		}
	}
	return nil
}

// negative reports whether the sum is below zero.
func (a *amount) negative() bool {
	if a.wide != nil {
		return a.wide.Sign() < 0
	}
	return a.small < 0
}
