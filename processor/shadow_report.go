package processor

import (
	"fmt"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables"
)

// ShadowReport is what came of a shadow replay.
type ShadowReport struct {
	// Schema holds what was rebuilt; with "_ledger" behind it, its ledger.
	Schema string `json:"schema"`
	// Partitions is what was read of each partition; Fresh counts effects.
	Partitions []RangeReport `json:"partitions"`
	// Records is how many were read, Effects how many of them had their effect in
	// the shadow, Duplicates and DeadLetters how many had none.
	Records     int64 `json:"records"`
	Effects     int64 `json:"effects"`
	Duplicates  int64 `json:"duplicates"`
	DeadLetters int64 `json:"dead_letters"`
	// Skipped is how many records were not rebuilt because a person has skipped them.
	Skipped int64 `json:"skipped"`
	// Reasons counts the shadow's dead letters by their reason.
	Reasons []offsets.DeadLetterCount `json:"reasons"`
	// Advanced is how many offsets the live processor has passed while the shadow
	// was rebuilt; they were rebuilt too.
	Advanced int64 `json:"advanced"`
	// Compacted says that the topic forgets records that have later ones of the
	// same record key, and so is no history: differences are to be expected.
	Compacted bool `json:"compacted"`
	// Tables are the comparisons, one for each table.
	Tables []TableDifference `json:"tables"`
	// LeftOut is what the copies of the tables lack.
	LeftOut []tables.LeftOut `json:"left_out"`
	// Notes name causes of differences that are known: what a person has skipped,
	// dead letters that were replayed since.
	Notes []string `json:"notes"`
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
	Volatile []tables.VolatileColumn `json:"volatile"`
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
