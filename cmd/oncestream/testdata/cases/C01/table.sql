create table kv (k int primary key, v text);
