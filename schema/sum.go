package schema

import "github.com/cespare/xxhash/v2"

// tombstoneSum is not the sum of the empty payload, which is -1205034819632174695.
const tombstoneSum = 0

// PayloadSum returns the xxhash64 of the record's value, by which a key that
// comes again with the same payload is told from a key that is used for another
// message. The sum of a tombstone is 0.
func PayloadSum(r *Record) int64 {
	if r.Tombstone() {
		return tombstoneSum
	}
	return int64(xxhash.Sum64(r.Value))
}
