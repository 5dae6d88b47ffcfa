create table times (id int primary key, t_ms time, t_us time, ts_us timestamptz, dec numeric(16,2));
