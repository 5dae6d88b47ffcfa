package processor

import (
	"fmt"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// ShadowReport is what came of a shadow replay.
type ShadowReport struct {
	// Schema holds what was rebuilt; with "_ledger" behind it, its ledger.
	Schema string
	// Partitions is what was read of each partition; Fresh counts effects.
	Partitions []RangeReport
	// Records is how many were read, Effects how many of them had their effect in
	// the shadow, Duplicates and DeadLetters how many had none.
	Records, Effects, Duplicates, DeadLetters int64
	// Skipped is how many records were not rebuilt because a person has skipped them.
	Skipped int64
	// Reasons counts the shadow's dead letters by their reason.
	Reasons []offsets.DeadLetterCount
	// Advanced is how many offsets the live processor has passed while the shadow
	// was rebuilt; they were rebuilt too.
	Advanced int64
	// Compacted says that the topic forgets records that have later ones of the
	// same record key, and so is no history: differences are to be expected.
	Compacted bool
	// Tables are the comparisons, one for each table.
	Tables []TableDifference
	// LeftOut is what the copies of the tables lack.
	LeftOut []tables.LeftOut
	// Notes name causes of differences that are known: what a person has skipped,
	// dead letters that were replayed since.
	Notes []string
}

// TableDifference is how a live table differs from what was rebuilt: Left is the
// rebuilt one, Right the live one. A row that is missing should be there; one that
// is extra is explained by no record.
//
// Where the primary key holds a column that the database fills in by itself, rows
// are paired by the key that makes the least of the difference: that one, another
// unique one, or none.
type TableDifference struct {
	tables.Difference
	// Volatile are the columns that the database fills in by itself and in which
	// rows differ, or that were left out for it.
	Volatile []tables.VolatileColumn
}

// Clean reports whether no table differs.
func (r ShadowReport) Clean() bool {
	for i := range r.Tables {
		if !r.Tables[i].None() {
			return false
		}
	}
	return true
}

// Rows adds up the rows that are missing, extra and different.
func (r ShadowReport) Rows() (missing, extra, different int64) {
	for i := range r.Tables {
		missing += r.Tables[i].Missing
		extra += r.Tables[i].Extra
		different += r.Tables[i].Different
	}
	return missing, extra, different
}

// String is the verdict in one line.
func (r ShadowReport) String() string {
	rebuilt := fmt.Sprintf("rebuilt %d effects of %d records of %d partitions (%d duplicates, %d dead letters)",
		r.Effects, r.Records, len(r.Partitions), r.Duplicates, r.DeadLetters)
	if r.Clean() {
		return fmt.Sprintf("%s: no difference in %d tables", rebuilt, len(r.Tables))
	}
	missing, extra, different := r.Rows()
	return fmt.Sprintf("%s: THE TABLES DIFFER: %d rows missing, %d extra, %d different", rebuilt, missing, extra, different)
}
