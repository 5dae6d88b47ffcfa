package main

// policyFields are the fields that say what becomes of a message which cannot
// be handled, and of one that comes again.
func policyFields(c *config) []field {
	p := &c.engine.Policy
	return []field{
		{
			path: "on_error", value: (*string)(&p.OnError), def: "dead_letter", choices: []string{"dead_letter", "halt", "park"},
			doc: "What becomes of a message that cannot be handled. `dead_letter`: it is set aside in the transaction that passes it. " +
				"`halt`: its partition stops before it. `park`: it is set aside, and behind it all later ones of its record key, in their order, until it is replayed or discarded.",
		},
		{
			path: "constraint_wait", value: &p.ConstraintWait, def: "0s",
			doc: "How long a batch waits for other partitions where a unique or a foreign key refuses one of its messages (two rows that swap a unique value, a child before its parent). " +
				"The message is tried again meanwhile, and the later ones of its partition wait, too; then `on_error` says what becomes of it. `0s`: it does not wait.",
		},
		{
			path: "on_key_reuse", value: (*string)(&p.OnKeyReuse), def: "dead_letter", choices: []string{"dead_letter", "ignore", "halt"},
			doc: "What becomes of a message whose key was used before for another payload. `ignore`: it counts as a duplicate.",
		},
		{
			path: "on_duplicate", value: &c.onDuplicate, def: "ignore", choices: []string{"ignore", "log", "record"},
			doc: "What becomes of a message whose key had its effect, besides being counted. `log`: a line with its cause and where it was first processed. `record`: a row in the ledger's table `duplicate_message`.",
		},
		{
			path: "fingerprint", value: &c.fingerprint, def: "value",
			doc: "What makes two messages of one key the same message. `value`: all bytes of the payload. `{fields: [a, b.c]}`: these fields, where a retry may differ in others such as the time of sending; " +
				"`1.0` and `1.00` are equal, and so are objects with their names in another order. `none`: nothing is compared, and a key that is used twice is always a duplicate. It must not change while keys are remembered.",
		},
		{
			path: "max_dead_letter_rate", value: (*share)(&p.MaxDeadLetterRate), def: "0.5",
			doc: "A partition halts where more than this share of its last records would be dead letters: then something else is wrong. `1` never halts.",
		},
		{path: "dead_letter_window", value: &p.DeadLetterWindow, def: "1000", doc: "The number of records that the rate is taken of; no less are judged."},
		{
			path: "max_dead_letter_value", value: (*size)(&p.MaxDeadLetterValue), def: "1MiB",
			doc: "Up to which size a dead letter keeps the payload. A larger one is read again from the topic, by its position.",
		},
	}
}
