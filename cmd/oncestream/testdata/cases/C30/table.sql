create table seen (k bytea, v int);
