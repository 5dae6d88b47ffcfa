select u.n, t."balance"::text
from unnest($1::bigint[], $2::text[]) with ordinality as u(c1, c2, n)
join "shop"."Order" as t on t."id" = u.c1 and t."kind" = u.c2::kind
order by u.n
for no key update of t;
