insert into "shop"."Order" as t ("id", "kind", "total", "n")
select u.c1, u.c2::kind, u.c3, u.c4
from unnest($1::bigint[], $2::text[], $3::numeric[], $4::integer[]) as u(c1, c2, c3, c4)
on conflict ("id", "kind") do update set "total" = coalesce(t."total", 0) + excluded."total", "n" = t."n" + excluded."n";
