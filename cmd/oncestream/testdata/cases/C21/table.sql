create table wide (id int primary key, a text, b int, c float8, d boolean);
