package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/embedded"
)

// envCaseRecords says how many messages the tests with bad messages send.
const envCaseRecords = "ONCESTREAM_TEST_CASE_RECORDS"

func caseRecords(tb testing.TB) int {
	tb.Helper()
	text, ok := os.LookupEnv(envCaseRecords)
	if !ok {
		return 20_000
	}
	n, err := strconv.Atoi(text)
	noErr(tb, err)
	return n
}

// A badMessage is a way to be bad: its payload, where %d is the message's
// number, and the reason that its dead letter must have.
type badMessage struct{ payload, reason string }

func badMessages() []badMessage {
	return []badMessage{
		{`no json`, "decode"},
		{`{"customer":1,"amount":1.00}`, "key_missing"},
		{`{"id":"m%d","customer":1,"amount":1.005}`, "value_range"},
		{`{"id":"m%d","customer":1,"amount":"much"}`, "value_type"},
		{`{"id":"m%d","customer":null,"amount":1.00}`, "not_null"},
		{`{"id":"m%d","customer":99,"amount":1.00}`, "foreign_key"},
		{`{"id":"m%d","customer":1,"amount":1.00,"code":"c1"}`, "unique"},
		{`{"id":"m%d","customer":1,"amount":-1.00}`, "check"},
		{`{"id":"m1","customer":2,"amount":9.00}`, "key_reuse"},
		{`{"id":"m%d","customer":1,"amount":1.00,"code":"a\u0000b"}`, "value_range"},
	}
}

// mixed makes n messages of which every hundredth is bad, in ten ways that take
// turns; and says how many dead letters there must be of each reason.
func mixed(n int) (records []schema.Record, reasons map[string]int) {
	ways := badMessages()
	reasons = map[string]int{}
	for i := range n {
		if i%100 != 50 {
			records = append(records, goodMessage(i))
			continue
		}
		way := ways[i/100%len(ways)]
		reasons[way.reason]++
		records = append(records, schema.Record{Value: []byte(strings.ReplaceAll(way.payload, "%d", strconv.Itoa(i)))})
	}
	return records, reasons
}

func clean(n int) (records []schema.Record, reasons map[string]int) {
	for i := range n {
		records = append(records, goodMessage(i))
	}
	return records, nil
}

func goodMessage(i int) schema.Record {
	return schema.Record{Value: fmt.Appendf(nil, `{"id":"m%d","customer":%d,"amount":%d.25,"count":%d,"code":"c%d"}`, i, i%3+1, i%1000, i, i)}
}

// sift runs the messages through the pipeline and checks that every good one is
// stored once and every bad one is a dead letter with its reason. meanwhile is
// called after the first messages have passed; the answer is how many passed in
// a second.
func (w *caseWorld) sift(records []schema.Record, reasons map[string]int, meanwhile func()) (perSecond float64) {
	w.tb.Helper()
	w.send(map[int32][]schema.Record{0: records})
	began := time.Now()
	r := w.background()
	if meanwhile != nil {
		w.waitFor(`select next_offset > 0 from consumer_offset`, "true")
		meanwhile()
	}
	w.waitFor(`select next_offset from consumer_offset`, strconv.Itoa(len(records)))
	took := time.Since(began)
	r.finish()
	dead := 0
	for reason, n := range reasons {
		w.value(`select count(*) from dead_letter where reason = '`+reason+`'`, strconv.Itoa(n))
		dead += n
	}
	good := len(records) - dead
	w.value(`select count(*) from dead_letter`, strconv.Itoa(dead))
	w.value(`select count(*) || ' of ' || count(distinct id) || ' up to ' || max(count) from payment`, fmt.Sprintf("%d of %d up to %d", good, good, len(records)-1))
	w.account()
	return float64(len(records)) / took.Seconds()
}

// Proves that bad messages, one of a hundred and each in one of ten ways, take
// no good one with them and are told apart; and says what they cost.
func TestCaseBadMessages(t *testing.T) {
	n := caseRecords(t)
	speed := map[bool]float64{}
	for _, bad := range []bool{false, true} {
		w := newCaseWorld(t, "testdata/cases/bad-messages")
		records, reasons := clean(n)
		if bad {
			records, reasons = mixed(n)
		}
		speed[bad] = w.sift(records, reasons, nil)
	}
	t.Logf("%d messages: %.0f a second clean, %.0f with 1 %% bad: ratio %.2f", n, speed[false], speed[true], speed[true]/speed[false])
}

// envCaseOutage says how long the database is down.
const envCaseOutage = "ONCESTREAM_TEST_CASE_OUTAGE"

func caseOutage(tb testing.TB) time.Duration {
	tb.Helper()
	text, ok := os.LookupEnv(envCaseOutage)
	if !ok {
		return 3 * time.Second
	}
	d, err := time.ParseDuration(text)
	noErr(tb, err)
	return d
}

// Proves that an outage in the middle of bad messages makes no dead letter of a
// good one, and loses and doubles none.
func TestCaseBadMessagesAndOutage(t *testing.T) {
	w, server := newServerWorld(t, "testdata/cases/bad-messages")
	records, reasons := mixed(caseRecords(t))
	w.sift(records, reasons, func() {
		noErr(t, server.Stop(t.Context(), embedded.StopImmediate))
		pause := time.NewTimer(caseOutage(t))
		defer pause.Stop()
		<-pause.C
		noErr(t, server.Restart(t.Context()))
	})
}
