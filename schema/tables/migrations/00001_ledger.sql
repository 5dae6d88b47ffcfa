-- +goose Up

-- One row for each partition of a topic that a consumer group reads. The row is
-- the claim (epoch, owner), the position (next_offset) and the account of what
-- has passed. It is updated once a batch and must stay HOT: no index besides the
-- primary key, and room on the page for the next version.
create table consumer_offset (
  consumer_group text not null,
  topic          text not null,
  partition      integer not null,
  cluster_id     text not null,
  topic_id       uuid not null,
  first_offset   bigint not null,           -- where the group began; nothing before it was ever read
  next_offset    bigint not null,           -- the next offset to handle: one past the last one passed
  leader_epoch   integer not null default -1, -- of the record before next_offset, -1 where unknown (KIP-320)
  epoch          bigint not null default 0, -- counts the claims; the fence
  owner          text,                      -- who holds the claim, null after it was let go
  record_time    timestamptz,               -- of the last record passed, by the record's own clock
  records        bigint not null default 0, -- records passed: effects + duplicates + dead letters
  duplicates_producer   bigint not null default 0, -- keys seen before at another position
  duplicates_redelivery bigint not null default 0, -- keys seen before at this very position
  dead_letters   bigint not null default 0,
  state          text not null default 'open' check (state in ('open', 'halted')),
  reason         text,                      -- why it is halted
  updated_at     timestamptz not null default now(),
  primary key (consumer_group, topic, partition),
  check (next_offset >= first_offset),
  check ((state = 'halted') = (reason is not null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What a person changed of a position, and why.
create table offset_change (
  id             bigint generated always as identity primary key,
  consumer_group text not null,
  topic          text not null,
  partition      integer not null,
  action         text not null check (action in ('rewind', 'skip', 'adopt')),
  old_offset     bigint not null,
  new_offset     bigint not null,
  epoch          bigint not null,           -- the epoch from this change on
  reason         text not null,
  changed_by     text not null default current_user,
  changed_at     timestamptz not null default now()
);

-- The name under which keys are remembered. It is small in each key's row. The
-- purge of its keys goes around the table's blocks, a few at a time.
create table handler (
  id          smallint generated always as identity primary key,
  name        text not null unique,
  purge_block bigint not null default 0,    -- of processed_message: where the purge goes on
  purged_at   timestamptz                   -- when it last went on
);

-- The idempotency keys. This table is the cost of the promise, so its columns
-- are ordered by alignment and it has one index: old keys are found by a walk
-- over the blocks, which costs an insert nothing.
create table processed_message (
  key           uuid not null,
  record_offset bigint not null,
  payload_sum   bigint not null,            -- xxhash64 of the payload, to tell a repeat from a reuse
  processed_at  timestamptz not null default now(),
  partition     integer not null,
  handler       smallint not null,
  result        jsonb,                      -- what the handler answered, for a duplicate to be given
  primary key (key, handler)
);

-- Records that were set aside in the transaction that passed their offset.
create table dead_letter (
  id             bigint generated always as identity primary key,
  consumer_group text not null,
  topic          text not null,
  partition      integer not null,
  record_offset  bigint not null,
  topic_id       uuid not null,
  handler        smallint not null,
  reason         text not null,             -- a code, such as value_range
  detail         text not null,             -- the same in words
  sqlstate       text,
  column_name    text,
  constraint_name text,
  record_time    timestamptz not null,
  record_key     bytea,
  record_value   bytea,                     -- null: a tombstone, or too large and kept by its position
  value_size     bigint,                    -- in bytes; null: a tombstone
  headers        jsonb not null default '[]', -- [name, base64 or null] in their order
  parked         boolean not null default false, -- later records of the record key wait behind it
  state          text not null default 'dead' check (state in ('dead', 'replayed', 'discarded')),
  created_at     timestamptz not null default now(),
  resolved_at    timestamptz,
  resolution     text,                      -- what came of it: applied, duplicate, stale, or why it was discarded
  fixed_value    bytea,                     -- the payload that was replayed in place of the record's
  unique (consumer_group, topic, partition, record_offset, topic_id, handler)
);
create index dead_letter_open on dead_letter (consumer_group, topic, partition, record_offset) where state = 'dead';

-- Messages whose key had been processed, for those who ask to have them kept.
create table duplicate_message (
  id              bigint generated always as identity primary key,
  key             uuid not null,
  handler         smallint not null,
  cause           text not null check (cause in ('redelivery', 'producer', 'replay')),
  topic           text not null,
  partition       integer not null,
  record_offset   bigint not null,
  first_partition integer not null,
  first_offset    bigint not null,
  seen_at         timestamptz not null default now()
);

-- Records to be published after the transaction that wrote them.
create table outbox (
  id         bigint generated always as identity primary key,
  key        uuid not null,                 -- the idempotency key, passed on as a header
  topic      text not null,
  record_key bytea,
  value      bytea,
  headers    jsonb not null default '[]',
  created_at timestamptz not null default now()
);

-- Calls to be made after the transaction that wrote them, with the same key
-- each time.
create table call (
  id           bigint generated always as identity primary key,
  key          uuid not null,
  handler      smallint not null,
  target       text not null,
  body         bytea,
  attempts     bigint not null default 0,
  state        text not null default 'open' check (state in ('open', 'done', 'dead')),
  answer       jsonb,
  created_at   timestamptz not null default now(),
  attempted_at timestamptz,
  unique (key, handler, target)
);

-- The calls that are done stay; to look for the open ones must not read them.
create index call_open on call (id) where state = 'open';

-- Up to where keys were purged: at or below the floor a key's absence says
-- nothing.
create table key_floor (
  handler       smallint not null,
  topic         text not null,
  partition     integer not null,
  record_offset bigint not null,
  purged_at     timestamptz not null default now(),
  primary key (handler, topic, partition)
);
