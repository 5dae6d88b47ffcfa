package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"time"
	"unicode/utf8"

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
		letters, _, err := readLetters(ctx, c, filter)
		if err != nil {
			return err
		}
		if out == "" {
			return exportLetters(ctx, a.stdout, letters, reveal, nil)
		}
		file, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		bar := a.newProgress("exported", int64(len(letters)))
		if err := exportLetters(ctx, file, letters, reveal, bar.set); err != nil {
			file.Close()
			return err
		}
		bar.finish()
		return file.Close()
	})
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

type exportedHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func exportLetters(ctx context.Context, out io.Writer, letters []offsets.StoredDeadLetter, reveal bool, told func(done int64)) error {
	w := bufio.NewWriter(out)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range letters {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := encoder.Encode(export(&letters[i], reveal)); err != nil {
			return err
		}
		if told != nil {
			told(int64(i + 1))
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
		ValueSize: d.ValueSize, ByPosition: d.ByPosition(), Headers: []exportedHeader{},
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
		e.Redacted = r.Value != nil || d.FixedValue != nil
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
