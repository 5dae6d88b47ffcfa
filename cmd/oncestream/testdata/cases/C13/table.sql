create table big (id int primary key, n bigint);
create table exact (id int primary key, n numeric);
