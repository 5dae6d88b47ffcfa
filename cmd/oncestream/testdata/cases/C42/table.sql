create table counters (counter text primary key, n int not null);
insert into counters values ('c1', 2147483640);
