create table pay (id int primary key, amount int, "Amount" int);
