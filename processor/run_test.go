package processor_test

import (
	"testing"

	"github.com/oncestream/oncestream/processor/processortest"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
)

// Proves the main job: every record has its effect once, a producer's
// duplicates have none, a second run and a replay change nothing, and the
// account adds up.
func TestRunToEnd(t *testing.T) {
	kafka := processortest.Kafka(t, processortest.WithTopic(3, "t"))
	db := tablestest.New(t)
	db.Exec(appended)
	for p := range int32(3) {
		kafka.Produce(t, "t", p, numbered("a", 1000)...) // the same keys in each partition
		kafka.Produce(t, "t", p, numbered(string('b'+p), 500)...)
	}
	p := newProcessor(t, config(t, db, kafka.Addrs()), texts(appendSink{}))
	toEnd(t, p)
	const want = "2500"
	if got := db.Value(`select count(*) from appended`); got != want {
		t.Errorf("%s effects, want %s", got, want)
	}
	toEnd(t, p)
	if r := replayed(t, p); r.Records != 4500 || r.Duplicates != 4500 {
		t.Errorf("replayed %v", r)
	}
	if got := db.Value(`select count(*) || ' ' || count(distinct id) from appended`); got != want+" "+want {
		t.Errorf("after the replay: %s", got)
	}
	account := db.Value(`select sum(records) || ' ' || sum(duplicates_producer) || ' ' || sum(next_offset - first_offset) from consumer_offset`)
	if account != "4500 2000 4500" {
		t.Errorf("account is %s", account)
	}
}
