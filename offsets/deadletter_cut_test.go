package offsets_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves that a dead letter is the record that the log has at its offset: passed
// again it is the same one, with what was decided about it; but after the log was
// cut another record may stand there, and must neither get the payload of the one
// that is gone nor be taken for settled because that one was.
func TestDeadLetterOfACutLog(t *testing.T) {
	db := tablestest.New(t)
	ledger := newLedger(t, db)
	passAside(t, db, ledger, 1)
	first := schema.Record{Topic: "orders", Offset: 7, Time: time.Unix(1000, 0), Key: []byte("k"), Value: []byte("first")}
	other := schema.Record{Topic: "orders", Offset: 7, Time: time.Unix(2000, 0), Key: []byte("k"), Value: []byte("other")}
	for _, step := range []struct {
		record  schema.Record
		reason  schema.Reason
		discard bool
		want    string
	}{
		{first, "decode", false, "first decode dead"},
		{first, "check", true, "first check discarded"},
		{first, "decode", false, "first check discarded"},
		{other, "not_null", false, "other not_null dead"},
		{other, "check", true, "other check discarded"},
		{other, "decode", false, "other check discarded"},
	} {
		err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			return ledger.SetAside(t.Context(), tx, []offsets.DeadLetter{{Record: &step.record, Reason: step.reason, Detail: "a test"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if step.discard {
			db.Exec(`update dead_letter set state = 'discarded', resolved_at = now(), resolution = 'a test' where record_offset = 7`)
		}
		rows := db.Rows(`select convert_from(record_value, 'UTF8'), reason, state from dead_letter where record_offset = 7`)
		if len(rows) != 1 || strings.Join(rows[0], " ") != step.want {
			t.Errorf("after %q for %s: %q, want %q", step.record.Value, step.reason, rows, step.want)
		}
	}
}
