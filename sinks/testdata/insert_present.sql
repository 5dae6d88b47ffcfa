select u.n
from unnest($1::bigint[], $2::text[]) with ordinality as u(c1, c2, n)
cross join lateral (select from "shop"."Order" as t where t."id" = u.c1 and t."kind" = u.c2::kind limit 1) as there
order by u.n;
