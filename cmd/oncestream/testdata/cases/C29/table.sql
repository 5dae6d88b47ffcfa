create table deep (id int primary key, j jsonb);
