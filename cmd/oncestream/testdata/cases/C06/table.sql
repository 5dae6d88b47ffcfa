create table event (id int primary key, at timestamptz);
