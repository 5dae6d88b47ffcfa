create table num (id int);
