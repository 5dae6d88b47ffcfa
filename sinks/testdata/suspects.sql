with r as materialized (
	select u.n as "$place", u.c1 as "id", u.c2::kind as "kind", u.c3 as "total", u.c4 as "n"
	from unnest($1::bigint[], $2::text[], $3::numeric[], $4::integer[]) with ordinality as u(c1, c2, c3, c4, n)
)
select "$place"
from r
where not ((total >= (0)::numeric))
union
select "$place"
from r
where r."kind" is not null and r."n" is not null
	and not exists (select from "shop"."Kind" as t where t."kind" = r."kind" and t."number" = r."n")
union
select "$place"
from r
where exists (select from "shop"."Order" as t where t."n" = r."n" and not (t."id" = r."id" and t."kind" = r."kind"))
union
select "$place"
from (select "$place", row_number() over (partition by "n" order by "$place") as i from r where r."n" is not null) as r
where i > 1
union
select "$place"
from r
where exists (select from "shop"."Order" as t where t."total" = r."total" and t."n" = r."n" and not (t."id" = r."id" and t."kind" = r."kind"))
union
select "$place"
from (select "$place", row_number() over (partition by "total", "n" order by "$place") as i from r where r."total" is not null and r."n" is not null) as r
where i > 1
order by 1;
