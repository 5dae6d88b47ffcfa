create table exact (n numeric);
create table big (n bigint);
