package processor

import "testing"

// Proves that a partition whose copies are often contested inserts for a while
// and then tries to copy again, and that a few contested ones change nothing.
func TestContention(t *testing.T) {
	copies := func(c *contention, contested func(i int) bool, batches int) (copied, twice int) {
		for i := range batches {
			if c.insert() {
				continue
			}
			copied++
			if contested(i) {
				twice++
			}
			c.learn(contested(i))
		}
		return copied, twice
	}
	for _, test := range []struct {
		name          string
		contested     func(i int) bool
		copied, twice int
	}{
		{"none is contested", func(int) bool { return false }, 690, 0},
		{"one of four is", func(i int) bool { return i%4 == 0 }, 690, 173},
		{"all are", func(int) bool { return true }, 50, 50},
		{"one of two is", func(i int) bool { return i%2 == 0 }, 99, 50},
		{"all are, for a while", func(i int) bool { return i < 5 }, 690 - insertedRun, 5},
	} {
		copied, twice := copies(&contention{}, test.contested, 690)
		if copied != test.copied || twice != test.twice {
			t.Errorf("%s: of 690 batches %d were copied, %d of them contested; want %d and %d", test.name, copied, twice, test.copied, test.twice)
		}
	}
}
