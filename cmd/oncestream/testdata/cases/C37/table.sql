create table arr (id int primary key, f float8[], t text[], j jsonb);
