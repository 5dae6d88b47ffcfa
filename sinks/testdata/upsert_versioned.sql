insert into "shop"."Order" as t ("id", "kind", "x""y", "took", "total", "n")
select u.c1, u.c2::kind, u.c3, u.c4::interval, u.c5, u.c6
from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::integer[]) as u(c1, c2, c3, c4, c5, c6)
on conflict ("id", "kind") do update set "x""y" = excluded."x""y", "n" = excluded."n"
where (t."n" is null or t."n" <= excluded."n");
