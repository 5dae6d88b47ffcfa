// Package schema is the message contract: what a record, a message, a row and an
// idempotency key are, and how one is made from another. It knows neither Kafka
// nor PostgreSQL.
//
// # From a record to a message
//
// A [Record] is what the broker delivered, bytes and a position. A [Decoder]
// turns its bytes into a body, a [KeyFunc] derives the idempotency key, and the
// three together are a [Message]:
//
//	Record ── Decoder[T] ──▶ body T ── KeyFunc[T] ──▶ Key
//	   └───────────────────────┴──────────────────────┴──▶ Message[T]
//
// The body is either a Go type ([JSON], [Text], [Raw], or a Decoder of your own)
// or a [Row]: the mapped fields only, each kept as the text that was sent ([Rows]).
//
// What cannot be decoded or has no key is a [Fault]: the message's own, whatever
// is done again. Any other error is not the message's.
//
// # Missing, null and tombstone
//
// These are three different things, and so is the empty payload:
//
//	a field that did not occur     Value of kind Missing (the zero Value)
//	a field that was null          Value of kind Null
//	a record without a value       Record.Value is nil; Tombstone reports true
//	a record of no bytes           Record.Value is empty; no JSON, but a Text
//	a record of the text null      no tombstone; [Rows] and [JSON] refuse it
//
// [Rows] gives a row of a tombstone, with all its values Missing, and [Raw] gives
// nil; [JSON] and [Text] refuse a tombstone with [ReasonTombstone].
//
// # The rules of JSON
//
// JSON is read by RFC 7493. A name that occurs twice in one object is refused,
// wherever it is: else a key could be taken from the one and an amount from the
// other. Invalid UTF-8 and lone surrogates are refused, not replaced. Names are
// compared exactly. A number keeps the literal that was sent, so that neither a
// digit nor a trailing zero is lost on the way to a column. Nesting ends at
// 10,000 levels. A decode fault names the byte.
//
// # The rules of keys
//
// A [Key] is 128 bits: a hash of its parts, each prefixed by its length, or a
// UUID where the part is declared one ([AsUUID]). Keys are made of the bytes that
// were sent: a number by its digits (1 and 1.0 differ, 1 and "1" do not), a binary
// record key byte by byte. A part that is missing, null or empty is a fault with
// [ReasonKeyMissing]; no two messages share a key because they have none.
package schema
