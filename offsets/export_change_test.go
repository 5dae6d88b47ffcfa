package offsets

// SabotageChangeEpoch lets a change of a position leave the epoch as it is.
func (l *Ledger) SabotageChangeEpoch() { replace(&l.sql.change, "epoch = o.epoch + 1, ", "") }
