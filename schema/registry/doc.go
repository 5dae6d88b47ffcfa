// Package registry reads records that name their schema in a schema registry:
// Avro, Protobuf and JSON in Confluent's frame.
//
//	r, err := registry.Open(registry.Options{URL: "https://registry:8081"})
//	decode := r.Avro(schema.NewFields("id", "amount", "buyer.name"))
//
// A decoder gives a [schema.Row], so that what reads rows of JSON reads these
// alike: the same sinks, the same keys. Values are the text that their type
// stands for, with every digit: a decimal has its schema's scale, a timestamp is
// RFC 3339, 64 bits are no float.
//
// # The frame
//
//	byte 0      0x00
//	bytes 1-4   the schema's id, big-endian
//	Protobuf    the message index: the number of its places and the places, as
//	            zigzag varints; the one byte 0 is short for the first message
//	the rest    the body
//
// # Whose fault it is
//
//	the frame or the body is wrong        the message's: a decode fault
//	the registry does not know the id     the message's, which names the remedy
//	the schema cannot be used             the message's: no other bytes would help
//	the registry does not answer (5xx,    nobody's: a [*schema.UnavailableError],
//	  401, no connection, a 404 that is   for the message is to be tried again
//	  not the registry's own)
//
// # The cache
//
// An id is asked for once and its schema kept for good. Look-ups of one id at
// the same time are one request. That an id is unknown is kept for a while
// ([Options.UnknownFor]), so that many records of one lost schema make few
// requests; that the registry did not answer is not kept.
package registry
