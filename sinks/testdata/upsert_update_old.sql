update "shop"."Order" as t
set "took" = u.c3::interval, "n" = u.c4
from unnest($1::bigint[], $2::text[], $3::text[], $4::integer[]) with ordinality as u(c1, c2, c3, c4, n)
where t."id" = u.c1 and t."kind" = u.c2::kind and (t."n" is null or t."n" <= u.c4)
returning u.n;
