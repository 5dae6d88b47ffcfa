create table part (id int, region text, v int, primary key (id, region)) partition by list (region);
create table part_eu partition of part for values in ('EU');
