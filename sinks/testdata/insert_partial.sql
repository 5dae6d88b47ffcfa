insert into "shop"."Order" as t ("id", "kind", "x""y")
select u.c1, u.c2::kind, u.c3
from unnest($1::bigint[], $2::text[], $3::text[]) as u(c1, c2, c3);
