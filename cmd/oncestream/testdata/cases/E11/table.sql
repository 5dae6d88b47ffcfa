create table seen (s text not null);
