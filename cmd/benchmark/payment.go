//go:build unix

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/tables"
)

// payment is a record as far as a bare loop needs it.
type payment struct {
	id     [16]byte
	offset int64
	sum    int64
	row    schema.Row
}

// paymentFields are the fields of the table in the order of copyPayments.
func paymentFields() *schema.Fields {
	return schema.NewFields("event_id", "customer_id", "amount", "currency", "method", "created_at")
}

// paymentDecoder is the product's decoder.
func paymentDecoder() schema.Decoder[schema.Row] { return schema.Rows(paymentFields()) }

const copyPayments = `copy payments (event_id, customer_id, amount, currency, method, created_at) from stdin (format binary)`

func decodePayment(ctx context.Context, decode schema.Decoder[schema.Row], from *kgo.Record) (payment, error) {
	r := schema.Record{Topic: from.Topic, Partition: from.Partition, Offset: from.Offset, Key: from.Key, Value: from.Value}
	row, err := decode(ctx, &r)
	if err != nil {
		return payment{}, err
	}
	id, err := uuid.ParseBytes(row.Values[0].Raw)
	return payment{id: id, offset: r.Offset, sum: schema.PayloadSum(&r), row: row}, err
}

// The frame of COPY's binary format (PostgreSQL manual, COPY, file formats).
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// appendRow appends the payment as a row of copyPayments.
func (p *payment) appendRow(b []byte) ([]byte, error) {
	b = append(b, 0, 6, 0, 0, 0, 16)
	b = append(b, p.id[:]...)
	b, err := appendBigint(b, p.row.Values[1].Raw)
	if err != nil {
		return b, err
	}
	place := len(b)
	if b, err = tables.AppendNumericText(append(b, 0, 0, 0, 0), p.row.Values[2].Raw); err != nil {
		return b, err
	}
	binary.BigEndian.PutUint32(b[place:], uint32(len(b)-place-4)) //nolint:gosec // a few bytes
	for _, v := range p.row.Values[3:5] {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v.Raw))) //nolint:gosec // a few bytes
		b = append(b, v.Raw...)
	}
	at, err := time.Parse(time.RFC3339Nano, string(p.row.Values[5].Raw))
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64(at.Sub(postgresEpoch).Microseconds())), err //nolint:gosec // the bits are the same
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func appendBigint(b, digits []byte) ([]byte, error) {
	n := uint64(0)
	for _, d := range digits {
		if d < '0' || d > '9' {
			return b, fmt.Errorf("%q is no customer", digits)
		}
		n = n*10 + uint64(d-'0')
	}
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), n), nil
}

// appendKey appends the payment's key as a row of copyKeys.
func (p *payment) appendKey(b []byte, partition int32) []byte {
	b = append(b, 0, 5, 0, 0, 0, 16)
	b = append(b, p.id[:]...)
	b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(p.offset))  //nolint:gosec // the bits are the same
	b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(p.sum))     //nolint:gosec // the bits are the same
	b = binary.BigEndian.AppendUint32(append(b, 0, 0, 0, 4), uint32(partition)) //nolint:gosec // the bits are the same
	return append(b, 0, 0, 0, 2, 0, 1)
}
