create table event (id int not null);
