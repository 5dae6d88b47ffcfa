create table app (id int primary key, v text);
