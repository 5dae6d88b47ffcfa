package torture

import "fmt"

// The tables of the workload. None has a unique key on the identity: nothing but
// the ledger keeps an effect from being there twice.
const workloadTables = `
create table appended (
  at bigint generated always as identity, id uuid not null, entity text not null, seq bigint not null check (seq > 0),
  partition int not null, record_offset bigint not null, xid xid8 not null default pg_current_xact_id()
);
create index on appended (id);
create table account (account text, currency char(3), balance numeric(20,2) not null, primary key (account, currency));
create table entry (topic text, partition int, record_offset bigint, record_time timestamptz not null, message_key text not null,
  account text not null, counter_account text not null, currency char(3) not null, amount numeric(20,2) not null);
create table counter (entity text primary key, n bigint not null, total numeric(20,2) not null);

-- The chain of transactions, written by the database itself: a pass is made under
-- the epoch of a claim, anything else that moves the position raises the epoch.
create table journal (
  id bigint generated always as identity primary key, partition int not null,
  from_offset bigint not null, to_offset bigint not null, epoch bigint not null, owner text, pass boolean not null,
  xid xid8 not null default pg_current_xact_id()
);
create function journal() returns trigger language plpgsql as $$
begin
  insert into public.journal (partition, from_offset, to_offset, epoch, owner, pass)
  values (new.partition, old.next_offset, new.next_offset, new.epoch, new.owner, new.epoch = old.epoch);
  return null;
end $$;
create trigger journal after update on oncestream.consumer_offset for each row
  when (old.next_offset is distinct from new.next_offset) execute function journal();`

const topic = "transfers"

// pipelineFile is the pipeline of a worker, which connects by a proxy of its own.
func pipelineFile(brokers, url string) string {
	return fmt.Sprintf(`name: torture
kafka: {brokers: [%s], topic: %s, start: earliest}
postgres: {url: "%s", idle_timeout: 3s}
batch: {max_records: 250}
drain_timeout: 5s
key: {field: id, type: uuid}
keys: {retain: 3h, purge_every: 5s}
sinks:
  - insert: {table: appended, columns: {id: id, entity: entity, seq: seq, partition: $partition, record_offset: $offset}}
  - ledger: {accounts: account, entries: entry, from: from, to: to, amount: amount, currency: currency}
  - sum:    {table: counter, key: {entity: entity}, add: {n: 1, total: amount}}
`, brokers, topic, url)
}
