with u as (
	select * from unnest($1::bigint[], $2::text[], $3::numeric[], $4::integer[]) with ordinality as u(c1, c2, c3, c4, n)
), inserted as (
	insert into "shop"."Order" as t ("id", "kind", "total", "n")
	select u.c1, u.c2::kind, u.c3, u.c4
	from u order by u.c1, u.c2::kind, u.n
	on conflict ("id", "kind") do nothing
	returning row(t."id", t."kind")::text as k
), there as (
	select k, row_number() over (partition by k) as i from inserted
), sent as (
	select u.n, s.k, row_number() over (partition by s.k order by u.n) as i
	from u cross join lateral (select row(u.c1::bigint, u.c2::kind::kind)::text as k) as s
)
select coalesce(sent.n, 0)
from sent full join there using (k, i)
where (sent.n is null or there.i is null)
	and (select count(*) from inserted) < (select count(*) from u)
order by 1;
