create table users (id int primary key, email text unique not null);
insert into users values (1, 'a@example.test'), (2, 'b@example.test');
