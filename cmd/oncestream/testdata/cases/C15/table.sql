create table likes (id int primary key, flavor text, item text);
