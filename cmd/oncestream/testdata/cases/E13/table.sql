create table num (id int primary key, n int);
