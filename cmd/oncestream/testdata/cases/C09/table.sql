create table money (id int primary key, amt numeric);
