insert into "shop"."Order" as t ("id", "kind")
select u.c1, u.c2::kind
from unnest($1::bigint[], $2::text[]) as u(c1, c2)
on conflict ("id", "kind") do nothing;
