create table msg (id bigint, s text, k text);
