package offsets

import (
	"context"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/oncestream/oncestream/schema"
)

// DeadLetterFilter selects dead letters; the zero filter selects all that wait
// for a decision.
type DeadLetterFilter struct {
	// IDs, Reasons and Partitions select those named; empty means all.
	IDs        []int64
	Reasons    []string
	Partitions []int32
	// Since and Until bound the time at which they were set aside, by the
	// database's clock; zero means no bound.
	Since, Until time.Time
	// States are those wanted. Defaults to StateDead.
	States []string
	// RecordKey selects those of one record key; nil means all.
	RecordKey []byte
	// Parked selects those alone behind which later records wait.
	Parked bool
	// Limit is how many are listed at most. Defaults to 0, which means all.
	Limit int
	// WithoutValues leaves the values where they are: Value and FixedValue are
	// nil then, and ByPosition and Fixed tell whether there are any.
	WithoutValues bool
}

// A page of a listing ends with whichever comes first. What one value may have
// above the bytes is the policy's to say.
const (
	pageLetters = 500
	pageBytes   = 4 << 20
)

const sqlSelected = `
from $dead_letter
where consumer_group = $1 and topic = $2 and handler = $3
  and ($4::bigint[] is null or id = any ($4)) and ($5::text[] is null or reason = any ($5)) and ($6::int[] is null or partition = any ($6))
  and ($7::timestamptz is null or created_at >= $7) and ($8::timestamptz is null or created_at < $8)
  and state = any ($9) and ($10::bytea is null or record_key = $10) and (parked or not $11)`

// sqlDeadLetters is one page. The sum of sizes ends it before it has become too
// large: a value is not read for being measured, nor for being cut off.
// The condition of the position is in two parts for the planner, which estimates
// a comparison of rows by their first column: of the last partition, and so of
// the only one, it would expect nothing to lie behind, and sort all there is.
const sqlDeadLetters = `
select id, partition, record_offset, topic_id, reason, detail, coalesce(sqlstate, ''), coalesce(column_name, ''), coalesce(constraint_name, ''),
  record_time, record_key, case when $12 then record_value end, coalesce(value_size, -1), record_value is null and value_size is not null,
  headers, parked, state, created_at, coalesce(resolved_at, '0001-01-01 00:00:00Z'), coalesce(resolution, ''),
  case when $12 then fixed_value end, fixed_value is not null
from (
  select *, sum(size) over (order by partition, record_offset, id) - size as before
  from (
    select *, octet_length(detail) + coalesce(octet_length(record_key), 0) + pg_column_size(headers)
      + case when $12::boolean then coalesce(octet_length(record_value), 0) + coalesce(octet_length(fixed_value), 0) else 0 end as size` + sqlSelected + `
      and id <= $13 and (partition, record_offset) >= ($14, $15) and not (partition = $14 and record_offset = $15 and id <= $16)
    order by partition, record_offset, id
    limit $17
  ) as page
) as sized
where before < $18
order by partition, record_offset, id`

const sqlLastDeadLetter = `select coalesce(max(id), 0) from $dead_letter`

// DeadLetters lists the dead letters of this group, topic and handler that the
// filter selects, by partition and offset. It ends at the first error.
//
// It reads a page at a time, and holds neither more than a page in memory nor
// anything on the server between two pages: a cursor over millions of them
// would hold back the vacuum of the whole database. The pages are found by
// position, which never changes. So while others set aside and decide, none is
// listed twice, and none is left out that has been in a wanted state all the
// time. What is set aside after the start is not listed, so that a listing ends
// also where that goes on. A state is looked at when its page is read: a dead
// letter that was resolved before then does not wait any more.
func (l *Ledger) DeadLetters(ctx context.Context, db DB, f DeadLetterFilter) iter.Seq2[*StoredDeadLetter, error] {
	return func(yield func(*StoredDeadLetter, error) bool) {
		operation := "list the dead letters of " + l.topic
		list := listing{ledger: l, db: db, filter: f, partition: -1, offset: -1}
		if err := db.QueryRow(ctx, l.sql.lastDeadLetter).Scan(&list.last); err != nil {
			yield(nil, wrap(operation, err))
			return
		}
		for {
			page, err := list.next(ctx)
			if err != nil {
				yield(nil, wrap(operation, err))
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// listing is how far one listing has come.
type listing struct {
	ledger *Ledger
	db     DB
	filter DeadLetterFilter
	last   int64 // the greatest id at the start
	listed int

	// The last one listed.
	partition  int32
	offset, id int64
}

// next returns the next page, an empty one at the end.
func (s *listing) next(ctx context.Context) ([]StoredDeadLetter, error) {
	limit := pageLetters
	if s.filter.Limit > 0 {
		limit = min(limit, s.filter.Limit-s.listed)
	}
	if limit == 0 {
		return nil, nil
	}
	// The statement is planned for each page: a plan for whatever the filter may
	// be does not know that the index by position finds a page at once, and sorts
	// all that is selected for each of them.
	args := append([]any{pgx.QueryExecModeCacheDescribe}, s.ledger.selected(&s.filter)...)
	args = append(args, !s.filter.WithoutValues, s.last, s.partition, s.offset, s.id, limit, pageBytes)
	rows, err := s.db.Query(ctx, s.ledger.sql.deadLetters, args...)
	if err != nil {
		return nil, err
	}
	page, err := pgx.CollectRows(rows, s.ledger.scanDeadLetter)
	if n := len(page); n > 0 {
		end := &page[n-1]
		s.partition, s.offset, s.id = end.Record.Partition, end.Record.Offset, end.ID
		s.listed += n
	}
	return page, err
}

// selected are the arguments of sqlSelected.
func (l *Ledger) selected(f *DeadLetterFilter) []any {
	states := f.States
	if len(states) == 0 {
		states = []string{StateDead}
	}
	return []any{
		l.group, l.topic, l.id(), emptyIsNull(f.IDs), emptyIsNull(f.Reasons), emptyIsNull(f.Partitions),
		zeroIsNull(f.Since), zeroIsNull(f.Until), states, f.RecordKey, f.Parked,
	}
}

func (l *Ledger) scanDeadLetter(row pgx.CollectableRow) (StoredDeadLetter, error) {
	d := StoredDeadLetter{Record: schema.Record{Topic: l.topic, LeaderEpoch: -1}}
	var headers []byte
	r := &d.Record
	err := row.Scan(&d.ID, &r.Partition, &r.Offset, (*uuid.UUID)(&r.TopicID), &d.Reason, &d.Detail, &d.SQLState, &d.Column, &d.Constraint,
		&r.Time, &r.Key, &r.Value, &d.ValueSize, &d.ByPosition, &headers, &d.Parked, &d.State, &d.CreatedAt, &d.ResolvedAt, &d.Resolution,
		&d.FixedValue, &d.Fixed)
	if err != nil {
		return d, err
	}
	r.Headers, err = decodeHeaders(headers)
	return d, err
}

// Grouping is what dead letters are counted by.
type Grouping string

// The groupings. A dead letter that names no column or constraint is counted
// under the empty name.
const (
	GroupByReason     Grouping = "reason"
	GroupByColumn     Grouping = "column"
	GroupByConstraint Grouping = "constraint"
	GroupByPartition  Grouping = "partition"
)

// DeadLetterCount is how many dead letters have a name in common.
type DeadLetterCount struct {
	// Name is the reason, the column, the constraint or the partition.
	Name  string `json:"name"`
	Count int64  `json:"count"`
	// Oldest and Newest are when the first and the last of them were set aside,
	// by the database's clock.
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
}

const sqlCountDeadLetters = `
select case $12::text when 'reason' then reason when 'column' then coalesce(column_name, '')
  when 'constraint' then coalesce(constraint_name, '') else partition::text end as name,
  count(*) as count, min(created_at) as oldest, max(created_at) as newest` + sqlSelected + `
group by 1
order by 2 desc, 1`

// CountDeadLetters counts the dead letters that the filter selects, whatever
// its limit, in groups. The largest comes first.
func (l *Ledger) CountDeadLetters(ctx context.Context, db DB, f DeadLetterFilter, by Grouping) ([]DeadLetterCount, error) {
	operation := "count the dead letters of " + l.topic
	rows, err := db.Query(ctx, l.sql.countDeadLetters, append(l.selected(&f), by)...)
	if err != nil {
		return nil, wrap(operation, err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeadLetterCount])
	return counts, wrap(operation, err)
}

func emptyIsNull[E any](list []E) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func zeroIsNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
