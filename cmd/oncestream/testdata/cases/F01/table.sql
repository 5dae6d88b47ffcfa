create table pay ("order" int, amount int);
