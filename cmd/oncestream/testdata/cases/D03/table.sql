create table cnt (k text primary key, n bigint not null default 0);
insert into cnt values ('A', 0), ('B', 0);
-- Each update takes its time, and now and then is told that it was the victim.
create sequence updates;
create function slow() returns trigger language plpgsql as $$
begin
  perform pg_sleep(0.01);
  case nextval('updates') % 20
    when 7 then raise exception 'a made-up deadlock' using errcode = '40P01';
    when 13 then raise exception 'a made-up serialization failure' using errcode = '40001';
    else return new;
  end case;
end $$;
create trigger slow after update on cnt for each row execute function slow();
