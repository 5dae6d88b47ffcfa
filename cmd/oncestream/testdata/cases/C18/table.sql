create table kv (id text primary key, v text);
insert into kv values ('2', 'stays');
