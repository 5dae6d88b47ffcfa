create table person (id int, name text, k text);
