insert into "shop"."Order" as t ("id", "n", "kind", "total", "took")
select s.account, s.counter_account, u.c3::kind, s.amount, u.c5::interval
from unnest($1::bigint[], $2::integer[], $3::text[], $4::numeric[], $5::text[]) with ordinality as u(c1, c2, c3, c4, c5, n)
cross join lateral (values (1, u.c1, u.c2, -u.c4), (2, u.c2, u.c1, u.c4)) as s(side, account, counter_account, amount)
order by u.n, s.side;
