insert into "shop"."Order" as t ("id", "kind", "balance")
select u.c1, u.c2::kind, 0
from unnest($1::bigint[], $2::text[]) with ordinality as u(c1, c2, n)
order by u.n
on conflict ("id", "kind") do nothing;
