package registry_test

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

// An Avro record becomes a row with its decimal's scale and its time as text.
func ExampleRegistry_Avro() {
	server := srfake.New() // stands for a real registry
	defer server.Close()
	server.SeedSchema("payments-value", 1, 7, sr.Schema{Schema: `{"type":"record","name":"Payment","fields":[
		{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
		{"name":"booked","type":["null",{"type":"long","logicalType":"timestamp-millis"}]},
		{"name":"buyer","type":{"type":"record","name":"Buyer","fields":[{"name":"name","type":"string"}]}}]}`})

	r, err := registry.Open(registry.Options{URL: server.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	decode := r.Avro(schema.NewFields("amount", "booked", "buyer.name"))
	row, err := decode(context.Background(), &schema.Record{Value: []byte("\x00\x00\x00\x00\x07\x04\x04\xe2\x02\x02\x06Zoe")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range row.Fields.Paths() {
		fmt.Printf("%s: %s\n", path, row.Get(path).Raw)
	}
	// Output:
	// amount: 12.50
	// booked: 1970-01-01T00:00:00.001Z
	// buyer.name: Zoe
}

// The frame's message index, here the short 0, names the type; what Protobuf
// cannot tell from its default is present, what it can is missing.
func ExampleRegistry_Protobuf() {
	server := srfake.New()
	defer server.Close()
	server.SeedSchema("orders-value", 1, 8, sr.Schema{Type: sr.TypeProtobuf, Schema: `syntax = "proto3";
		message Order { uint64 id = 1; int32 count = 2; optional string note = 3; }`})

	r, err := registry.Open(registry.Options{URL: server.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	decode := r.Protobuf(schema.NewFields("id", "count", "note"))
	row, err := decode(context.Background(), &schema.Record{Value: []byte("\x00\x00\x00\x00\x08\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range row.Fields.Paths() {
		fmt.Printf("%s: %q, missing %t\n", path, row.Get(path).Raw, row.Get(path).Kind == schema.Missing)
	}
	// Output:
	// id: "18446744073709551615", missing false
	// count: "0", missing false
	// note: "", missing true
}

// JSON in a frame is read without asking the registry.
func ExampleRegistry_JSON() {
	r, err := registry.Open(registry.Options{URL: "https://registry.invalid"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	row, err := r.JSON(schema.NewFields("id"))(context.Background(), &schema.Record{Value: []byte("\x00\x00\x00\x00\x09" + `{"id":9007199254740993}`)})
	fmt.Println(string(row.Get("id").Raw), err)
	// Output: 9007199254740993 <nil>
}

// Records without a frame are read by one schema, which may come from a file.
func ExampleAvro() {
	decode, err := registry.Avro(`{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}`, schema.NewFields("id"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = decode(context.Background(), &schema.Record{Topic: "t", Value: []byte{}})
	fmt.Println(err)
	row, err := decode(context.Background(), &schema.Record{Topic: "t", Value: []byte{84}})
	fmt.Println(string(row.Get("id").Raw), err)
	// Output:
	// t/0@0: decode: in "id": avro: short buffer for uvarlong
	// 42 <nil>
}

// The address is checked at the start; the registry itself may be down then.
func ExampleOpen() {
	_, err := registry.Open(registry.Options{URL: "registry:8081"})
	fmt.Println(err)
	// Output: registry: URL: an address such as https://registry:8081 is needed (got "registry:8081")
}
