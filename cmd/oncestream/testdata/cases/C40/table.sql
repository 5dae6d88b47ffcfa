create table person (id int primary key, name text);
