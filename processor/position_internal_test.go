package processor

import (
	"testing"

	"github.com/oncestream/oncestream/offsets"
)

// Proves how a stored offset is judged by what the log holds: the bounds are
// inclusive, the leader epoch finds a cut that the end of the log does not show
// and goes before it, and one that the broker does not know halts nothing.
func TestJudgePosition(t *testing.T) {
	claim := offsets.Claim{Next: 100, LeaderEpoch: 4}
	for name, tt := range map[string]struct {
		log      logBounds
		code     string
		from, to int64
	}{
		"within":                    {log: logBounds{start: 0, end: 200, epochEnd: 150}},
		"at the start":              {log: logBounds{start: 100, end: 200, epochEnd: 100}},
		"at the end":                {log: logBounds{start: 0, end: 100, epochEnd: 100}},
		"an empty log":              {log: logBounds{start: 100, end: 100, epochEnd: -1}},
		"epoch unknown":             {log: logBounds{start: 0, end: 200, epochEnd: -1}},
		"epoch before the start":    {log: logBounds{start: 50, end: 200, epochEnd: 0}},
		"before the start":          {log: logBounds{start: 101, end: 200, epochEnd: -1}, code: CodeRetentionPassed, from: 100, to: 101},
		"cut and grown again":       {log: logBounds{start: 0, end: 200, epochEnd: 95}, code: CodeLogTruncated, from: 95, to: 100},
		"cut, and the end shows it": {log: logBounds{start: 0, end: 97, epochEnd: 95}, code: CodeLogTruncated, from: 95, to: 100},
		"beyond the end":            {log: logBounds{start: 0, end: 99, epochEnd: -1}, code: CodeBeyondEnd, from: 99, to: 100},
	} {
		h := tt.log.judge(claim)
		if h == nil {
			h = &haltError{}
		}
		if from, to := h.doubt(); h.code != tt.code || from != tt.from || to != tt.to {
			t.Errorf("%s: %q [%d, %d), want %q [%d, %d)", name, h.code, from, to, tt.code, tt.from, tt.to)
		}
	}
}
