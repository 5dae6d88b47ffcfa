package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/oncestream/oncestream/processor"
)

// age is a duration that may be given in days, such as 30d or 1d12h.
type age time.Duration

func parseAge(text string) (age, bool) {
	var whole time.Duration
	if days, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, false
		}
		whole, text = time.Duration(n)*24*time.Hour, rest
	}
	if text == "" && whole > 0 {
		return age(whole), true
	}
	d, err := time.ParseDuration(text)
	return age(whole + d), err == nil && d >= 0 && whole+d > 0
}

// String writes the days apart.
func (a age) String() string {
	const day = age(24 * time.Hour)
	days, rest := a/day, time.Duration(a%day)
	switch {
	case days == 0:
		return rest.String()
	case rest == 0:
		return strconv.FormatInt(int64(days), 10) + "d"
	}
	return strconv.FormatInt(int64(days), 10) + "d" + rest.String()
}

// guardField says what stands against a second effect.
func guardField(c *config) field {
	return field{
		path: "guard", value: &c.guard, def: "key", choices: []string{"key", "constraint"},
		doc: "What stands against a second effect of a message. `key`: the ledger remembers its key. `constraint`: the first sink's own table does, by a unique index on exactly the columns of the key, and no key is written, which is faster; the sinks behind it see what was new. " +
			"The first sink is then an `insert` without a `where`. A duplicate has no cause, is not told from a key that is used again for another payload, and comes back when its row is deleted.",
	}
}

// keysFields are the fields that say how long keys are kept.
func keysFields(k *processor.Keys) []field {
	return []field{
		{
			path: "keys.retain", value: (*age)(&k.Retain), noDefault: "for ever",
			doc: "How long a key is kept, by the database's clock; it is purged within another tenth of that. An event that a producer sends again later has its effect again; what the broker delivers again has not, since the offset decides. " +
				"Pipelines that share a handler share the shortest time.",
		},
		{path: "keys.purge_every", value: &k.PurgeEvery, def: "1m", doc: "How often old keys are looked for."},
	}
}
