create table money (id int primary key, amount numeric);
