create table doc (id int primary key, version int, v text constraint not_forbidden check (v <> 'forbidden'));
