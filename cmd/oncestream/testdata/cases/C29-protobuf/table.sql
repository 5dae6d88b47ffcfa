create table deep (k text);
