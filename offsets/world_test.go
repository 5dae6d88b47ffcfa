package offsets_test

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/offsets"
)

// worldTables are what a user would have, without any constraint that could
// hide a double effect, and journals that only tests keep. passed has a line for
// each record that a transaction has passed, chain one for each advance.
const worldTables = `
create table effect (key uuid not null, partition int not null, record_offset bigint not null);
create table passed (partition int not null, record_offset bigint not null, outcome text not null);
create table chain (
  id bigint generated always as identity,
  partition int not null, from_offset bigint not null, to_offset bigint not null, epoch bigint not null, worker text not null, topic_id uuid
);
create function note_change() returns trigger language plpgsql as $$
begin
  insert into chain (partition, from_offset, to_offset, epoch, worker, topic_id)
  values (new.partition, new.old_offset, new.new_offset, new.epoch, 'operator', new.new_topic_id);
  return new;
end $$;
create trigger note_change after insert on offset_change for each row execute function note_change();
create table consumer_offset_old (like consumer_offset);
create table processed_message_old (like processed_message);
create table effect_old (like effect);
create table passed_old (like passed);
create table chain_old (like chain);
create table offset_change_old (like offset_change);`

// takeSnapshot and restoreSnapshot are a backup and its restore: everything goes
// back together, as in a real one.
const (
	takeSnapshot = `
begin;
delete from consumer_offset_old; insert into consumer_offset_old select * from consumer_offset;
delete from processed_message_old; insert into processed_message_old select * from processed_message;
delete from effect_old; insert into effect_old select * from effect;
delete from passed_old; insert into passed_old select * from passed;
delete from offset_change_old; insert into offset_change_old select * from offset_change;
delete from chain_old; insert into chain_old select * from chain;
commit;`
	restoreSnapshot = `
begin;
delete from consumer_offset; insert into consumer_offset select * from consumer_offset_old;
delete from processed_message; insert into processed_message select * from processed_message_old;
delete from effect; insert into effect select * from effect_old;
delete from passed; insert into passed select * from passed_old;
delete from offset_change; insert into offset_change overriding system value select * from offset_change_old;
delete from chain; insert into chain overriding system value select * from chain_old;
commit;`
)

// shown are the tables of scenarios, without what differs from run to run.
var shown = map[string]string{
	"offsets": `select consumer_group as group, topic, partition as p, epoch, coalesce(owner, '') as owner, first_offset as first, next_offset as next,
		leader_epoch as leader, records, duplicates_producer as producer, duplicates_redelivery as redelivery, state
		from consumer_offset order by topic, partition`,
	"keys": `select h.name as handler, rtrim(convert_from(uuid_send(m.key), 'UTF8')) as key, m.partition as p, m.record_offset as offset
		from processed_message m join handler h on h.id = m.handler order by 1, 2`,
	"effects": `select rtrim(convert_from(uuid_send(key), 'UTF8')) as key, partition as p, record_offset as offset from effect order by 1, 2, 3`,
}

// keyOf makes a key that can be read in a dump.
func keyOf(name string) [16]byte {
	return [16]byte([]byte(name + strings.Repeat(" ", 16-len(name))))
}

func keyName(key [16]byte) string { return strings.TrimRight(string(key[:]), " ") }

// writeEffects writes the effects of what is fresh, and notes every record that
// is passed.
func writeEffects(ctx context.Context, tx pgx.Tx, entries []offsets.Entry, admissions []offsets.Admission) error {
	var batch pgx.Batch
	for i, e := range entries {
		batch.Queue("insert into passed values ($1, $2, $3)", e.Partition, e.Offset, outcomeName(admissions[i]))
		if admissions[i].Outcome == offsets.Fresh {
			batch.Queue("insert into effect values ($1, $2, $3)", e.Key, e.Partition, e.Offset)
		}
	}
	return tx.SendBatch(ctx, &batch).Close()
}

func outcomeName(a offsets.Admission) string {
	switch a.Outcome {
	case offsets.Fresh:
		return "fresh"
	case offsets.Conflict:
		return "conflict"
	default:
		return string(a.Cause)
	}
}

// emptyWorld empties everything but the handlers' names.
const emptyWorld = `
begin;
delete from offset_change; delete from offset_change_old;
delete from consumer_offset; delete from processed_message; delete from effect; delete from passed; delete from chain;
delete from consumer_offset_old; delete from processed_message_old; delete from effect_old; delete from passed_old; delete from chain_old;
commit;`

// brokenPromises is the checker: a line for each promise that the committed
// tables break. The numbers are the invariants' names in the project. The logs of
// these tests have no gaps.
const brokenPromises = `
with link as (
  select *, worker = 'operator' as by_person,
    lag(to_offset) over w as previous, lag(epoch) over w as previous_epoch, lead(id) over w is null as is_last,
    (select a.topic_id from chain as a where a.partition = c.partition and a.id < c.id and a.worker = 'operator' and a.topic_id is not null
     order by a.id desc limit 1) as adopted
  from chain as c window w as (partition by partition order by id)
), advanced as (
  select partition, o as record_offset, count(*) as times
  from link, generate_series(from_offset, to_offset - 1) as o where not by_person group by 1, 2
), seen as (
  select partition, record_offset, count(*) as times from passed group by 1, 2
), account as (
  select o.*, count(p.*) as lines,
    count(*) filter (where p.outcome = 'producer') as by_producer,
    count(*) filter (where p.outcome = 'redelivery') as by_redelivery
  from consumer_offset as o left join passed as p using (partition)
  group by o.consumer_group, o.topic, o.partition
)
select 'I1: partition ' || partition || ' has passed records of topic ' || topic_id || ' as those of ' || adopted
from link where not by_person and topic_id <> adopted
union all
select 'I1: offset ' || record_offset || ' of partition ' || partition || ' was advanced over ' || coalesce(a.times, 0)
  || ' times and passed ' || coalesce(s.times, 0) || ' times'
from advanced as a full join seen as s using (partition, record_offset) where a.times is distinct from s.times
union all
select 'I1: partition ' || partition || ' has passed ' || next_offset - first_offset + rewound - skipped || ' offsets, with ' || lines || ' records'
from account where next_offset - first_offset + rewound - skipped <> lines
union all
select 'I4: the chain of partition ' || partition || ' has a gap: ' || coalesce(previous, 0) || ' and then ' || from_offset || ' to ' || to_offset
from link where coalesce(previous, 0) <> from_offset or not by_person and to_offset <= from_offset
union all
select 'I4: the chain of partition ' || partition || ' ends at ' || to_offset || ', and it stands at ' || next_offset
from link join consumer_offset using (partition) where is_last and to_offset <> next_offset
union all
select 'I4: epoch ' || epoch || ' of partition ' || partition || ' comes after ' || previous_epoch
from link where previous_epoch > epoch
union all
select 'I7: the account of partition ' || partition || ' does not add up'
from account where records <> lines or duplicates_producer <> by_producer or duplicates_redelivery <> by_redelivery
union all
select 'I2: key ' || convert_from(uuid_send(key), 'UTF8') || ' has ' || count(*) || ' effects' from effect group by key having count(*) > 1
union all
select 'I2: ' || count(*) || ' effects and keys do not match'
from effect as e full join processed_message as m using (key, partition, record_offset)
where e.key is null or m.key is null having count(*) > 0`

// writeChain notes an advance, in its own transaction; topic is what was read.
func writeChain(ctx context.Context, tx pgx.Tx, worker string, topic [16]byte, from, to offsets.Claim) error {
	_, err := tx.Exec(ctx, "insert into chain (partition, from_offset, to_offset, epoch, worker, topic_id) values ($1, $2, $3, $4, $5, $6)",
		from.Partition, from.Next, to.Next, from.Epoch, worker, topic)
	return err
}
