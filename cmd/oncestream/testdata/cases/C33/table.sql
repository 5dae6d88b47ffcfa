create table people (id int primary key, name text);
