update "shop"."Order" as t
set "id" = t."id"
from unnest($1::bigint[], $2::text[]) with ordinality as u(c1, c2, n)
where t."id" = u.c1 and t."kind" = u.c2::kind
returning u.n;
