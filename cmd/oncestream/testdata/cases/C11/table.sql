create table neg (id int primary key, n numeric(5,-2));
