create table parent (id int primary key);
insert into parent values (1);
create table child (id int primary key, parent int references parent deferrable initially deferred);
