package offsets_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// changingDB changes the tables between a claim and the look at what it refused.
type changingDB struct {
	offsets.DB
	change func()
}

func (db changingDB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "select partition, cluster_id") {
		db.change()
	}
	return db.DB.Query(ctx, sql, args...)
}

// A partition that was refused and then changed before it was looked at, as by a
// person who decides just then, is neither claimed nor refused: claim again. A
// refusal without a difference would halt the partition for no reason, and none
// at all would leave it without an owner.
func TestRefusalChanged(t *testing.T) {
	for change, want := range map[string]string{
		"update consumer_offset set topic_id = '00000000-0000-0000-0000-000000000000'": "partition 0 was changed meanwhile; claim again",
		"delete from consumer_offset": "1 of the rows of partitions [0] were deleted meanwhile; claim again",
	} {
		db := tablestest.New(t)
		ledger := newLedger(t, db)
		partitions := []offsets.Assigned{{Partition: 0}}
		if _, _, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{TopicID: [16]byte{1}}, partitions); err != nil {
			t.Fatal(err)
		}
		changing := changingDB{db.Pool, func() { db.Exec(change) }}
		_, _, err := ledger.Claim(t.Context(), changing, "A", offsets.Identity{}, partitions)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("after %s got %v, want %s", change, err, want)
		}
		claims, refusals, err := ledger.Claim(t.Context(), db.Pool, "A", offsets.Identity{}, partitions)
		if err != nil || len(claims) != 1 || len(refusals) != 0 {
			t.Errorf("claimed again after %s, got %v %v %v", change, claims, refusals, err)
		}
	}
}
