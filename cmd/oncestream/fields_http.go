package main

import (
	"time"

	"github.com/oncestream/oncestream/processor"
)

// httpConfig says where the program answers over HTTP.
type httpConfig struct {
	listen string // empty: nowhere
}

// watchConfig says how often a run looks at itself, and what it warns of.
type watchConfig struct {
	every                  time.Duration
	retention, transaction time.Duration // retention 0: as the forecast decides
}

// httpFields are the fields of what operators see.
func httpFields(e *processor.Config, h *httpConfig, w *watchConfig) []field {
	return []field{
		{
			path: "stuck_after", value: &e.StuckAfter, def: "1m",
			doc: "How long a partition may be at its claim or at one batch before `/readyz` and the metrics call it stuck. One that has nothing to read is not.",
		},
		{
			path: "http.listen", value: &h.listen, noDefault: "off", flag: "http", env: "ONCESTREAM_HTTP",
			doc: "Where `run` answers over HTTP, such as `:9464` or `127.0.0.1:9464`: `/metrics`, `/livez`, `/readyz` and `/status`. It is plain HTTP without a sign-in, and shows names and offsets but no payload.",
		},
		{
			path: "watch.every", value: &w.every, def: "15s",
			doc: "How often `run` looks at the lag, the drift of Kafka's offset, the retention and the oldest transaction, for the metrics and the warnings.",
		},
		{
			path: "watch.retention", value: &w.retention, noDefault: "a tenth of the topic's retention, 1h at least and half of it at most",
			doc: "`run` warns when retention removes the next record of a partition within this time.",
		},
		{
			path: "watch.transaction", value: &w.transaction, def: "5m",
			doc: "`run` warns when a transaction of the database is older than this: it keeps the vacuum from the dead rows of the positions.",
		},
	}
}
