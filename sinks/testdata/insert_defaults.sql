insert into "shop"."Order"
select from generate_series(1, $1::bigint);
