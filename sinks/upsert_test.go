package sinks_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables/tablestest"
	"github.com/oncestream/oncestream/sinks"
)

var kv = schema.NewFields("k", "v")

// Proves case C01: of several messages of one key in a batch the last one wins,
// and PostgreSQL never meets a row twice in one statement.
func TestUpsertLastWins(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text)`)
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kv", Key: []string{"k"}, Fields: kv}))
	mustApply(t, db, sink, batch(t, kv, `1={"k":1,"v":"a"}`, `2={"k":2,"v":"b"}`, `1={"k":1,"v":"c"}`, `1={"k":1,"v":"d"}`))
	equal(t, compact(db, `select * from kv order by k`), "1,d 2,b")
}

// Proves case C02: writes and deletes of one key in one batch end as the log
// ends, and a row that was deleted keeps nothing from before.
func TestUpsertDeletes(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text, w text default 'new'); insert into kv values (1, 'old', 'old'), (3, 'old', 'old')`)
	fields := schema.NewFields("k", "v", "w")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kv", Key: []string{"k"}, Fields: fields}))
	mustApply(t, db, sink, batch(t, fields,
		`1={"k":1,"v":"data1","w":"w1"}`, `1=`, `1={"k":1,"v":"data2"}`,
		`2={"k":2,"v":"x"}`, `2=`, `4=`, `3={"k":3,"w":"kept"}`,
	))
	equal(t, compact(db, `select * from kv order by k`), "1,data2,new 3,old,kept")
}

// Proves case C15: in merge mode a missing field leaves the column as it is, however
// they are cut into batches; in replace mode it becomes the default.
func TestUpsertMissingFields(t *testing.T) {
	fields := schema.NewFields("id", "flavor", "item")
	lines := []string{`1={"id":1,"flavor":"chocolate"}`, `1={"id":1,"item":"cookie"}`, `1={"id":1,"flavor":null}`}
	for _, mode := range []sinks.Mode{"", sinks.Merge, sinks.Replace} {
		for _, size := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", mode, size), func(t *testing.T) {
				db := tablestest.New(t)
				db.Exec(`create table c (id int primary key, flavor text default 'plain', item text)`)
				sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "c", Key: []string{"id"}, Fields: fields, Mode: mode}))
				want := []string{"1,chocolate,-", "1,chocolate,cookie", "1,-,cookie"}
				if mode == sinks.Replace {
					want = []string{"1,chocolate,-", "1,plain,cookie", "1,-,-"}
				}
				messages := batch(t, fields, lines...)
				for i := 0; i < len(messages); i += size {
					last := min(i+size, len(messages))
					mustApply(t, db, sink, messages[i:last])
					equal(t, compact(db, `select id, coalesce(flavor, '-'), coalesce(item, '-') from c`), want[last-1])
				}
			})
		}
	}
}

// Proves that a message may leave out a column that is not null where its row
// is there, and that otherwise the message of the missing row is at fault.
func TestUpsertPartialOfNotNull(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table n (id int primary key, name text not null, at interval); insert into n values (1, 'a'), (2, 'b')`)
	fields := schema.NewFields("id", "name", "at")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "n", Key: []string{"id"}, Fields: fields}))
	mustApply(t, db, sink, batch(t, fields, `2={"id":2,"at":"1 day"}`, `1={"id":1,"at":"2 days"}`, `3={"id":3,"name":"c"}`, `1={"id":1}`))
	equal(t, compact(db, `select id, name, coalesce(at::text, '-') from n order by id`), "1,a,2 days 2,b,1 day 3,c,-")
	for _, lines := range [][]string{
		{`1={"id":1,"at":"1 day"}`, `4={"id":4,"at":"1 day"}`},
		{`1=`, `1={"id":1,"at":"1 day"}`},
		{`0={"id":1,"name":"x"}`, `9={"id":9}`},
	} {
		err := apply(t, db, sink, batch(t, fields, lines...))
		equal(t, faultOf(t, err), "1 not_null name name")
	}
}

// Proves the rules for tombstones, and where a tombstone's key comes from.
func TestUpsertTombstones(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int, part int, v text, primary key (k)); create unique index on kv (k, part)`)
	columns := []sinks.Column[schema.Row]{sinks.Field("k", "k"), sinks.Field("part", "$partition"), sinks.Field("v", "v")}
	recordKey := slices.Clone(columns)
	recordKey[0] = sinks.Field("k", "$key")
	for name, c := range map[string]struct {
		sink *sinks.Upsert[schema.Row]
		want string
	}{
		"delete by one column":         {&sinks.Upsert[schema.Row]{Key: []string{"k"}, Columns: columns}, ""},
		"delete by pseudo-field":       {&sinks.Upsert[schema.Row]{Key: []string{"k", "part"}, Columns: recordKey}, ""},
		"two columns, one of the body": {&sinks.Upsert[schema.Row]{Key: []string{"k", "part"}, Columns: columns}, "1 tombstone k k"},
		"ignore":                       {&sinks.Upsert[schema.Row]{Key: []string{"k"}, Columns: columns, Tombstone: sinks.TombstoneIgnore}, "1,0,a"},
		"error":                        {&sinks.Upsert[schema.Row]{Key: []string{"k"}, Columns: columns, Tombstone: sinks.TombstoneError}, "1 tombstone  "},
	} {
		t.Run(name, func(t *testing.T) {
			db.Exec(`truncate kv`)
			c.sink.Table = "kv"
			sink := prepared(t, db, sinks.Sink[schema.Row](c.sink))
			err := apply(t, db, sink, batch(t, kv, `1={"k":1,"v":"a"}`, `1=`))
			if err != nil {
				equal(t, faultOf(t, err), c.want)
				return
			}
			equal(t, compact(db, `select * from kv`), c.want)
		})
	}
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kv", Key: []string{"k"}, Columns: columns}))
	messages := batch(t, kv, `x=`)
	equal(t, faultOf(t, apply(t, db, sink, messages)), "0 value_type k k")
	messages[0].Key = nil
	equal(t, faultOf(t, apply(t, db, sink, messages)), "0 tombstone k k")
}

// Proves what Prepare refuses, all of it at once.
func TestUpsertConfiguration(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table part (id int, region text, v int, primary key (id, region)) partition by list (region)`)
	err := prepare(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{
		Table: "part", Key: []string{"id"}, Mode: "append", Tombstone: "drop",
		Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id"), sinks.Field("vv", "v")},
	}))
	equal(t, fmt.Sprint(err), strings.Join([]string{
		`sinks: upsert part: no column "vv" in table part`,
		`sinks: upsert part: no unique index on (id) of table part; there is one on (id, region)`,
		`sinks: upsert part: mode "append" is neither merge nor replace`,
		`sinks: upsert part: tombstone "drop" is none of delete, ignore and error`,
	}, "\n"))
	err = prepare(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{
		Table: "part", Key: []string{"id", "region"}, Columns: []sinks.Column[schema.Row]{sinks.Field("id", "id")},
	}))
	equal(t, fmt.Sprint(err), strings.Join([]string{
		`sinks: upsert part: key column "region" is not written: give it among Columns`,
		`sinks: upsert part: column "region" of table part is not null and has no default, but is not written`,
	}, "\n"))
}

// Proves against a model that the table is the fold of the log, however the log
// is cut into batches: writes, partial writes, nulls and tombstones.
func TestUpsertAgainstModel(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table m (k int primary key, a text, b text)`)
	fields := schema.NewFields("k", "a", "b")
	sink := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "m", Key: []string{"k"}, Fields: fields}))
	rapid.Check(t, func(rt *rapid.T) {
		model := map[int][2]string{}
		var lines []string
		for range rapid.IntRange(1, 12).Draw(rt, "n") {
			k := rapid.IntRange(1, 3).Draw(rt, "k")
			if rapid.IntRange(0, 4).Draw(rt, "tombstone") == 0 {
				delete(model, k)
				lines = append(lines, fmt.Sprintf("%d=", k))
				continue
			}
			row, payload := model[k], fmt.Sprintf(`"k":%d`, k)
			for i, name := range []string{"a", "b"} {
				switch v := rapid.SampledFrom([]string{"missing", "null", "x", "y"}).Draw(rt, name); v {
				case "missing":
				case "null":
					row[i], payload = "", payload+fmt.Sprintf(`,%q:null`, name)
				default:
					row[i], payload = v, payload+fmt.Sprintf(`,%q:%q`, name, v)
				}
			}
			model[k] = row
			lines = append(lines, fmt.Sprintf("%d={%s}", k, payload))
		}
		db.Exec(`truncate m`)
		messages := batch(t, fields, lines...)
		cut := rapid.IntRange(0, len(messages)).Draw(rt, "cut")
		mustApply(t, db, sink, messages[:cut])
		mustApply(t, db, sink, messages[cut:])
		var want []string
		for k, row := range model {
			want = append(want, fmt.Sprintf("%d,%s,%s", k, row[0], row[1]))
		}
		if got := compact(db, `select k, coalesce(a, ''), coalesce(b, '') from m order by k`); got != strings.Join(sorted(want), " ") {
			rt.Fatalf("got %s, want %s", got, want)
		}
	})
}

// Proves that rows are written in the order of their keys, whatever the order
// of the messages, so that two workers that meet lock rows in one order. The
// physical order of new rows tells.
func TestKeysAreWrittenInOrder(t *testing.T) {
	db := tablestest.New(t)
	db.Exec(`create table kv (k int primary key, v text); create table balance (account text primary key, total numeric, n bigint not null)`)
	upsert := prepared(t, db, sinks.Sink[schema.Row](&sinks.Upsert[schema.Row]{Table: "kv", Key: []string{"k"}, Fields: kv}))
	mustApply(t, db, upsert, batch(t, kv, `3={"k":3,"v":"a"}`, `1={"k":1,"v":"b"}`, `2={"k":2,"v":"c"}`))
	equal(t, compact(db, `select k from kv order by ctid`), "1 2 3")
	sum := prepared(t, db, sinks.Sink[schema.Row](balances()))
	mustApply(t, db, sum, batch(t, amounts, `c={"account":"c","amount":1}`, `a={"account":"a","amount":1}`, `b={"account":"b","amount":1}`))
	equal(t, compact(db, `select account from balance order by ctid`), "a b c")
}
