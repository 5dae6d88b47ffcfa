create table person (id bigint, s text);
