package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncestream/oncestream/schema"
)

const (
	customers = 10_000
	// nearRepeats is how far back half of the repeats reach; the other half
	// reach anywhere.
	nearRepeats = 1000
)

// payments generates payments as a producer might send them: each payment once,
// and some again later, the same bytes at another place. It is a pure function
// of its fields, so that everyone who knows them knows the records.
type payments struct {
	seed       uint64
	records    int     // to send in all, repeats included
	duplicates float64 // the share of them that are repeats, 0 up to 1
	partitions int
	size       int // of a value, at least, in bytes
	// random are event ids without an order (UUIDv4) instead of those that are
	// ordered by time: each new one then meets another page of an index.
	random bool

	rng            *rand.Rand
	sent, distinct int
	repeats        int // still to send
}

func (p *payments) start() {
	p.rng = rand.New(rand.NewPCG(p.seed, 0))
	p.repeats = int(p.duplicates * float64(p.records))
}

// next returns the next n records, fewer at the end, none after it.
func (p *payments) next(n int) []schema.Record {
	if p.rng == nil {
		p.start()
	}
	n = min(n, p.records-p.sent)
	list := make([]schema.Record, 0, n)
	for range n {
		list = append(list, p.one())
	}
	return list
}

// one returns a repeat with the probability with which the rest of the records
// holds the rest of the repeats, so that their number comes out exact.
func (p *payments) one() schema.Record {
	left := p.records - p.sent
	p.sent++
	if p.distinct == 0 || p.rng.IntN(left) >= p.repeats {
		p.distinct++
		return p.payment(p.distinct - 1)
	}
	p.repeats--
	reach := p.distinct
	if p.rng.IntN(2) == 0 {
		reach = min(reach, nearRepeats)
	}
	again := p.payment(p.distinct - 1 - p.rng.IntN(reach))
	if p.rng.IntN(2) == 0 {
		// A producer with another partitioner, or a topic that has grown.
		again.Partition = int32(p.rng.IntN(p.partitions))
	}
	return again
}

// payment returns payment n. It depends on the seed and n alone, so that a
// repeat needs no memory of what was sent.
func (p *payments) payment(n int) schema.Record {
	rng := rand.New(rand.NewPCG(p.seed, uint64(n)+1))
	customer := rng.IntN(customers) + 1
	cents := rng.IntN(100_000) + 1
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n)*10*time.Millisecond + time.Duration(rng.IntN(10_000))*time.Microsecond)
	value := fmt.Sprintf(`{"event_id":"%s","customer_id":%d,"amount":%d.%02d,"currency":"%s","method":"%s","created_at":"%s","reference":"`,
		p.eventID(at, rng), customer, cents/100, cents%100,
		pick(rng, "EUR", "EUR", "EUR", "USD", "GBP"), pick(rng, "card", "transfer", "wallet"), at.Format("2006-01-02T15:04:05.000000Z07:00"))
	value += strings.Repeat("x", max(0, p.size-len(value)-len(`"}`))) + `"}`
	return schema.Record{
		Key:       []byte(strconv.Itoa(customer)),
		Value:     []byte(value),
		Partition: int32(customer % p.partitions),
	}
}

// eventID draws as many numbers for either kind of id, so that all else of a
// payment is the same.
func (p *payments) eventID(at time.Time, rng *rand.Rand) uuid.UUID {
	id := timeOrdered(at, rng)
	if !p.random {
		return id
	}
	// The time is mixed away by the payment's own numbers (RFC 9562, section 5.4).
	mixed := rand.NewPCG(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:]))
	binary.BigEndian.PutUint64(id[:8], mixed.Uint64()&^0xf000|0x4000)
	binary.BigEndian.PutUint64(id[8:], mixed.Uint64()&(1<<62-1)|1<<63)
	return id
}

// timeOrdered returns a UUID of version 7 (RFC 9562, section 5.7) for the time.
func timeOrdered(at time.Time, rng *rand.Rand) uuid.UUID {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|rng.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(id[8:], rng.Uint64()&(1<<62-1)|1<<63)
	return id
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }
