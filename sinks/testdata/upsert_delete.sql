delete from "shop"."Order" as t
using unnest($1::bigint[], $2::text[]) as u(c1, c2)
where t."id" = u.c1 and t."kind" = u.c2::kind;
