delete from "shop"."Order" as t
using unnest($1::bigint[], $2::text[], $3::integer[]) as u(c1, c2, c3)
where t."id" = u.c1 and t."kind" = u.c2::kind and (t."n" is null or t."n" <= u.c3);
