-- The tables that payments.yaml writes to.
create table payments (
  event_id    uuid           primary key,
  customer_id bigint         not null,
  amount      numeric(14, 2) not null,
  currency    text           not null,
  method      text,
  created_at  timestamptz    not null
);

create table customer_totals (
  customer_id bigint         primary key,
  total       numeric(20, 2) not null,
  payments    bigint         not null
);
