package offsets

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/oncestream/oncestream/schema"
)

// DeadLetter is a record that is set aside, with the reason.
type DeadLetter struct {
	Record *schema.Record
	// Reason is the code, Detail the same in words.
	Reason schema.Reason
	Detail string
	// SQLState, Column and Constraint are what the database has said of it,
	// empty where it was not asked.
	SQLState, Column, Constraint string
	// Parked says that later records of the same record key wait behind it.
	Parked bool
	// ByPosition says that the value is not kept: it is too large, and can be
	// read again at the record's position.
	ByPosition bool
}

const sqlSetAside = `
insert into $dead_letter as d (consumer_group, topic, topic_id, handler, partition, record_offset, reason, detail, sqlstate, column_name,
  constraint_name, record_time, record_key, record_value, value_size, headers, parked)
select $1, $2, $3, $4, r.*
from unnest($5::int[], $6::bigint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::timestamptz[], $13::bytea[], $14::bytea[],
  $15::bigint[], $16::jsonb[], $17::boolean[]) as r
on conflict (consumer_group, topic, partition, record_offset, topic_id, handler) do update
set reason = excluded.reason, detail = excluded.detail, sqlstate = excluded.sqlstate, column_name = excluded.column_name,
  constraint_name = excluded.constraint_name, parked = excluded.parked, record_time = excluded.record_time, record_key = excluded.record_key,
  record_value = excluded.record_value, value_size = excluded.value_size, headers = excluded.headers,
  state = 'dead', resolved_at = null, resolution = null, fixed_value = null
where d.state = 'dead'
  or (d.record_time, d.record_key, d.value_size) is distinct from (excluded.record_time, excluded.record_key, excluded.value_size)`

// SetAside writes dead letters, inside the transaction that passes their
// records. A record that is passed again after a rewind keeps its one dead
// letter, and what a person has decided about it. Where the log was cut and has
// another record at the offset now, as after an unclean election, that one takes
// the place: what was decided was decided about the other.
func (l *Ledger) SetAside(ctx context.Context, tx pgx.Tx, letters []DeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	var c deadLetterColumns
	for i := range letters {
		if err := c.add(&letters[i]); err != nil {
			return wrap("set aside "+letters[i].Record.Position(), err)
		}
	}
	args := append([]any{l.group, l.topic, uuid.UUID(letters[0].Record.TopicID), l.id()}, c.args()...)
	_, err := tx.Exec(ctx, l.sql.setAside, args...)
	return wrap(fmt.Sprintf("set aside %d records from %s", len(letters), letters[0].Record.Position()), err)
}

// deadLetterColumns are dead letters by column, as the statement takes them.
type deadLetterColumns struct {
	partitions                   []int32
	offsets                      []int64
	reasons, details             []string
	states, columns, constraints []pgtype.Text
	times                        []time.Time
	keys, values                 [][]byte
	sizes                        []pgtype.Int8
	headers                      []json.RawMessage
	parked                       []bool
}

func (c *deadLetterColumns) add(d *DeadLetter) error {
	r := d.Record
	headers, err := encodeHeaders(r.Headers)
	if err != nil {
		return err
	}
	value := r.Value
	if d.ByPosition {
		value = nil
	}
	c.partitions, c.offsets = append(c.partitions, r.Partition), append(c.offsets, r.Offset)
	c.reasons, c.details = append(c.reasons, string(d.Reason)), append(c.details, storable(d.Detail))
	c.states, c.columns, c.constraints = append(c.states, optional(d.SQLState)), append(c.columns, optional(d.Column)), append(c.constraints, optional(d.Constraint))
	c.times = append(c.times, r.Time)
	c.keys, c.values = append(c.keys, r.Key), append(c.values, value)
	c.sizes = append(c.sizes, pgtype.Int8{Int64: int64(len(r.Value)), Valid: r.Value != nil})
	c.headers, c.parked = append(c.headers, headers), append(c.parked, d.Parked)
	return nil
}

func (c *deadLetterColumns) args() []any {
	return []any{
		c.partitions, c.offsets, c.reasons, c.details, c.states, c.columns, c.constraints, c.times, c.keys, c.values, c.sizes, c.headers, c.parked,
	}
}

// storable makes a text that PostgreSQL takes: what user code or a payload has
// put into an error may hold NUL or no UTF-8.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\x00`)
}

func optional(s string) pgtype.Text { return pgtype.Text{String: storable(s), Valid: s != ""} }

// encodeHeaders keeps names, order, repeats and every byte of the values.
func encodeHeaders(headers []schema.Header) (json.RawMessage, error) {
	pairs := make([][2]any, len(headers))
	for i, h := range headers {
		pairs[i] = [2]any{storable(h.Key), nil}
		if h.Value != nil {
			pairs[i][1] = h.Value // encoded as base64
		}
	}
	return json.Marshal(pairs)
}

func decodeHeaders(text []byte) ([]schema.Header, error) {
	var pairs [][2]json.RawMessage
	if err := json.Unmarshal(text, &pairs); err != nil {
		return nil, err
	}
	headers := make([]schema.Header, len(pairs))
	for i, pair := range pairs {
		if err := json.Unmarshal(pair[0], &headers[i].Key); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(pair[1], &headers[i].Value); err != nil {
			return nil, err
		}
	}
	return headers, nil
}

const sqlBlocked = `
select distinct record_key from $dead_letter
where consumer_group = $1 and topic = $2 and partition = $3 and handler = $4 and state = 'dead' and parked and record_key is not null
  and ($5::bytea[] is null or record_key = any ($5))`

// Blocked returns which of the record keys stand behind a parked dead letter;
// nil asks for all of the partition. Inside a batch's transaction, after its
// advance, the answer holds until the transaction ends: whoever resolves dead
// letters locks the partition's row first.
func (l *Ledger) Blocked(ctx context.Context, db DB, partition int32, recordKeys [][]byte) ([][]byte, error) {
	rows, err := db.Query(ctx, l.sql.blocked, l.group, l.topic, partition, l.id(), recordKeys)
	if err != nil {
		return nil, wrap(fmt.Sprintf("look for parked records of %s/%d", l.topic, partition), err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	return keys, wrap(fmt.Sprintf("look for parked records of %s/%d", l.topic, partition), err)
}

const sqlForget = `delete from $processed_message where handler = $2 and key = any ($1::uuid[])`

// Forget takes keys back that this same transaction has admitted, because their
// messages were found to be at fault: a dead letter's key must be new when it
// is replayed.
func (l *Ledger) Forget(ctx context.Context, tx pgx.Tx, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, l.sql.forget, column{entries, all(entries), keyCell}, l.id())
	if err == nil && tag.RowsAffected() != int64(len(entries)) {
		err = fmt.Errorf("%d of %d keys were there", tag.RowsAffected(), len(entries))
	}
	return wrap("forget keys from "+l.at(entries[0].Partition, entries[0].Offset), err)
}

const sqlResults = `
update $processed_message p set result = r.result
from unnest($1::uuid[], $3::jsonb[]) as r (key, result)
where p.key = r.key and p.handler = $2`

// Keep stores what the handlers have answered beside the keys, for a later
// duplicate to be given. results are JSON, one for each entry.
func (l *Ledger) Keep(ctx context.Context, tx pgx.Tx, entries []Entry, results []json.RawMessage) error {
	if len(entries) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, l.sql.results, column{entries, all(entries), keyCell}, l.id(), results)
	return wrap("keep the results from "+l.at(entries[0].Partition, entries[0].Offset), err)
}

const sqlDuplicates = `
insert into $duplicate_message (handler, topic, key, cause, partition, record_offset, first_partition, first_offset)
select $1, $2, d.*
from unnest($3::uuid[], $4::text[], $5::int[], $6::bigint[], $7::int[], $8::bigint[]) as d`

// RecordDuplicates keeps a row for each duplicate, for those who must be able
// to show what came twice. Admissions that are no duplicates are passed over.
func (l *Ledger) RecordDuplicates(ctx context.Context, tx pgx.Tx, entries []Entry, admissions []Admission) error {
	var places []int
	var causes []string
	var partitions, firstPartitions []int32
	var firstOffsets []int64
	for i := range admissions {
		if a := &admissions[i]; a.Outcome == Duplicate {
			places, causes = append(places, i), append(causes, string(a.Cause))
			partitions, firstPartitions = append(partitions, entries[i].Partition), append(firstPartitions, a.First.Partition)
			firstOffsets = append(firstOffsets, a.First.Offset)
		}
	}
	if len(places) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, l.sql.duplicates, l.id(), l.topic, column{entries, places, keyCell}, causes, partitions,
		column{entries, places, offsetCell}, firstPartitions, firstOffsets)
	return wrap("record the duplicates from "+l.at(entries[0].Partition, entries[0].Offset), err)
}

// all are the places of all entries.
func all(entries []Entry) []int {
	places := make([]int, len(entries))
	for i := range places {
		places[i] = i
	}
	return places
}
