create table target (id int primary key, v int);
