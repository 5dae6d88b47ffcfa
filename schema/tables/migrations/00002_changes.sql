-- +goose Up

-- What a person has changed of a position stays in the account, so that it adds
-- up: next_offset - first_offset + rewound = records + gaps of the log + skipped.
alter table consumer_offset
  add column rewound bigint not null default 0, -- offsets that were passed and then set back, or are of a topic that was left
  add column skipped bigint not null default 0; -- offsets that a person has left out

-- Where a change has taken the position to another topic, both are named.
alter table offset_change
  add column old_cluster_id text,
  add column old_topic_id   uuid,
  add column new_cluster_id text,
  add column new_topic_id   uuid;

-- Which environment the database is of: one row, or none until a start names it.
create table environment (
  only_one boolean primary key default true check (only_one),
  label    text not null check (label <> '')
);

-- Who has given the environment its label, and why.
create table environment_change (
  id         bigint generated always as identity primary key,
  old_label  text,
  new_label  text not null,
  reason     text not null,
  changed_by text not null,
  changed_at timestamptz not null default now()
);
