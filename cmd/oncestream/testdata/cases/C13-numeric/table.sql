create table exact (id int primary key, n numeric);
