create table customer (id int primary key);
insert into customer values (1), (2), (3);
create table payment (
  id       text not null,
  customer int not null references customer,
  amount   numeric(12,2) not null check (amount >= 0),
  count    int,
  code     text
);
create unique index one_code on payment (code);
