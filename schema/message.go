package schema

import "context"

// Message is a record with its decoded body and its idempotency key.
type Message[T any] struct {
	*Record
	// ID is the idempotency key. While a [KeyFunc] runs it is still zero.
	ID   Key
	Body T
}

// Decoder turns a record's bytes into a body of type T. An error of a Decoder
// is the message's own fault with reason [ReasonDecode], unless it is a
// [*Fault] that gives another reason. A Decoder must not keep or change the
// record, and is called from several goroutines at once.
type Decoder[T any] func(ctx context.Context, r *Record) (T, error)

// KeyFunc derives the idempotency key of a message. An error is the message's
// own fault; a KeyFunc never answers with a key that several messages without
// a key of their own would share.
type KeyFunc[T any] func(m Message[T]) (Key, error)
