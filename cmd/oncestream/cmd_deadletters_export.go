package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/oncestream/oncestream/offsets"
)

func (a *app) letterExportCommand() *cobra.Command {
	var out string
	var reveal bool
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write dead letters as lines of JSON",
		Long: `export writes a JSON object a line for each dead letter that the flags select. A
key, a value or a header's value that is no UTF-8 is written as base64, in the
field of that name with _base64 behind it. Without --reveal the values are left
out, and the line says "redacted".`,
		Example: `  oncestream dead-letters export payments.yaml --reveal --out letters.ndjson
  oncestream dead-letters export payments.yaml | jq -r .reason | sort | uniq -c`,
	}
	cmd.Flags().StringVar(&out, "out", "", "the file to write, readable by its owner only (default: the standard output)")
	cmd.Flags().BoolVar(&reveal, "reveal", false, "write payloads")
	f := &letterFlags{states: true}
	return a.letterCommand(cmd, f, func(ctx context.Context, c *config, filter offsets.DeadLetterFilter, _ string) error {
		filter.WithoutValues = !reveal
		return withLetters(ctx, c, func(conn *pgx.Conn, ledger *offsets.Ledger, _ time.Time) error {
			if out == "" {
				return exportLetters(a.stdout, ledger.DeadLetters(ctx, conn, filter), reveal, nil)
			}
			counts, err := ledger.CountDeadLetters(ctx, conn, filter, offsets.GroupByReason)
			if err != nil {
				return err
			}
			bar := a.newProgress("exported", total(counts))
			return exportFile(out, ledger.DeadLetters(ctx, conn, filter), reveal, bar)
		})
	})
}

func exportFile(name string, letters iter.Seq2[*offsets.StoredDeadLetter, error], reveal bool, bar *progress) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := exportLetters(file, letters, reveal, bar.set); err != nil {
		file.Close()
		return err
	}
	bar.finish()
	return file.Close()
}

// exportedLetter is a line of an export.
type exportedLetter struct {
	ID          int64            `json:"id"`
	Topic       string           `json:"topic"`
	Partition   int32            `json:"partition"`
	Offset      int64            `json:"offset"`
	Time        time.Time        `json:"time"`
	Reason      string           `json:"reason"`
	Detail      string           `json:"detail"`
	SQLState    string           `json:"sqlstate,omitempty"`
	Column      string           `json:"column,omitempty"`
	Constraint  string           `json:"constraint,omitempty"`
	Parked      bool             `json:"parked"`
	State       string           `json:"state"`
	CreatedAt   time.Time        `json:"created_at"`
	ResolvedAt  *time.Time       `json:"resolved_at,omitempty"`
	Resolution  string           `json:"resolution,omitempty"`
	Key         *string          `json:"key,omitempty"`
	KeyBase64   []byte           `json:"key_base64,omitempty"`
	Headers     []exportedHeader `json:"headers"`
	ValueSize   int64            `json:"value_size"` // -1: a tombstone
	Value       *string          `json:"value,omitempty"`
	ValueBase64 []byte           `json:"value_base64,omitempty"`
	Fixed       *string          `json:"fixed_value,omitempty"`
	FixedBase64 []byte           `json:"fixed_value_base64,omitempty"`
	Redacted    bool             `json:"redacted,omitempty"`
	ByPosition  bool             `json:"by_position,omitempty"` // the value is in the topic only
}

// exportedCount is a line of what list --by counts.
type exportedCount struct {
	By     string    `json:"by"`
	Name   string    `json:"name"`
	Count  int64     `json:"count"`
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
}

func writeCountsJSON(out io.Writer, by string, counts []offsets.DeadLetterCount) error {
	encoder := json.NewEncoder(out)
	for _, c := range counts {
		if err := encoder.Encode(exportedCount{by, c.Name, c.Count, c.Oldest.UTC(), c.Newest.UTC()}); err != nil {
			return err
		}
	}
	return nil
}

type exportedHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// exportLetters writes a line for each, and tells told, if set, how many are
// done.
func exportLetters(out io.Writer, letters iter.Seq2[*offsets.StoredDeadLetter, error], reveal bool, told func(done int64)) error {
	w := bufio.NewWriter(out)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	done := int64(0)
	for d, err := range letters {
		if err == nil {
			err = encoder.Encode(export(d, reveal))
		}
		if err != nil {
			return errors.Join(err, w.Flush())
		}
		if done++; told != nil {
			told(done)
		}
	}
	return w.Flush()
}

func export(d *offsets.StoredDeadLetter, reveal bool) exportedLetter {
	r := &d.Record
	e := exportedLetter{
		ID: d.ID, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time.UTC(),
		Reason: string(d.Reason), Detail: detailText(d.Detail, reveal), SQLState: d.SQLState, Column: d.Column, Constraint: d.Constraint,
		Parked: d.Parked, State: d.State, CreatedAt: d.CreatedAt.UTC(), Resolution: d.Resolution,
		ValueSize: d.ValueSize, ByPosition: d.ByPosition, Headers: []exportedHeader{},
	}
	if d.State != offsets.StateDead {
		at := d.ResolvedAt.UTC()
		e.ResolvedAt = &at
	}
	e.Key, e.KeyBase64 = textOrBytes(r.Key)
	for _, h := range r.Headers {
		text, bytes := textOrBytes(h.Value)
		e.Headers = append(e.Headers, exportedHeader{h.Key, text, bytes})
	}
	if reveal {
		e.Value, e.ValueBase64 = textOrBytes(r.Value)
		e.Fixed, e.FixedBase64 = textOrBytes(d.FixedValue)
	} else {
		e.Redacted = d.ValueSize >= 0 && !d.ByPosition || d.Fixed
	}
	return e
}

// textOrBytes returns text for JSON, or the bytes where they are none.
func textOrBytes(b []byte) (*string, []byte) {
	if b == nil || !utf8.Valid(b) {
		return nil, b
	}
	text := string(b)
	return &text, nil
}
