package schema_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/cockroachdb/apd/v3"
	"github.com/google/uuid"

	"github.com/oncestream/oncestream/schema"
)

// A row holds the mapped fields, with every digit; the rest of the payload is
// checked and passed over.
func ExampleRows() {
	decode := schema.Rows(schema.NewFields("id", "amount", "buyer.name", `vat\.rate`, "note"))
	row, err := decode(context.Background(), &schema.Record{Value: []byte(
		`{"id":9007199254740993,"amount":12.50,"buyer":{"name":"Zoë","age":7},"vat.rate":null}`,
	)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range row.Fields.Paths() {
		v := row.Get(path)
		fmt.Printf("%s: %q, present %t, missing %t\n", path, v.Raw, v.Present(), v.Kind == schema.Missing)
	}
	// Output:
	// id: "9007199254740993", present true, missing false
	// amount: "12.50", present true, missing false
	// buyer.name: "Zoë", present true, missing false
	// vat\.rate: "", present false, missing false
	// note: "", present false, missing true
}

// A payload that says two things is refused: else the key could be taken from
// one of them and the amount from the other.
func ExampleRows_refused() {
	decode := schema.Rows(schema.NewFields("id"))
	_, err := decode(context.Background(), &schema.Record{Topic: "payments", Offset: 42, Value: []byte(`{"id":1,"amount":1,"amount":100}`)})
	fmt.Println(err)
	// Output:
	// payments/0@42: decode: json at byte 19 in /amount: duplicate object member name
}

func ExampleJSON() {
	type Payment struct {
		ID     string  `json:"id"`
		Amount float64 `json:"amount"`
	}
	decode := schema.JSON[Payment]()
	payment, err := decode(context.Background(), &schema.Record{Value: []byte(`{"id":"p-1","amount":2.5,"more":true}`)})
	fmt.Println(payment, err)
	_, err = decode(context.Background(), &schema.Record{Topic: "payments", Offset: 43})
	fmt.Println(err)
	// Output:
	// {p-1 2.5} <nil>
	// payments/0@43: tombstone: the record has no value; this decoder needs one
}

func ExampleText() {
	text, err := schema.Text()(context.Background(), &schema.Record{Value: []byte("hello")})
	fmt.Println(text, err)
	// Output: hello <nil>
}

func ExampleByHeader() {
	key := schema.ByHeader[string]("idempotency-key")
	k, err := key(schema.Message[string]{Record: &schema.Record{
		Headers: []schema.Header{{Key: "idempotency-key", Value: []byte("order-4711")}},
	}})
	fmt.Println(k, err)
	_, err = key(schema.Message[string]{Record: &schema.Record{Topic: "orders", Offset: 7}})
	fmt.Println(err)
	// Output:
	// order-4711 <nil>
	// orders/0@7: key_missing: the header idempotency-key is missing
}

// Several parts are joined by their lengths, so that no two lists of parts share
// a key.
func ExampleJoin() {
	key := schema.Join(schema.HeaderPart[string]("tenant"), schema.RecordKeyPart[string]())
	message := func(tenant, recordKey string) schema.Message[string] {
		return schema.Message[string]{Record: &schema.Record{
			Key: []byte(recordKey), Headers: []schema.Header{{Key: "tenant", Value: []byte(tenant)}},
		}}
	}
	one, _ := key(message("a|b", "c"))
	two, _ := key(message("a", "b|c"))
	fmt.Println(one, two, one.ID == two.ID)
	// Output: a\|b|c a|b\|c false
}

// A key that is declared a UUID is stored as it is: time-ordered UUIDs keep the
// index of keys local.
func ExampleAsUUID() {
	key := schema.AsUUID(schema.RecordKeyPart[string]())
	k, err := key(schema.Message[string]{Record: &schema.Record{Key: []byte("0190F3C2-7A1B-7C33-9D4E-5F60718293A4")}})
	fmt.Println(k, uuid.UUID(k.ID).Version(), err)
	// Output: 0190f3c2-7a1b-7c33-9d4e-5f60718293a4 VERSION_7 <nil>
}

func ExampleByValue() {
	type Payment struct{ Merchant, Reference string }
	key := schema.ByValue(func(m schema.Message[Payment]) string { return m.Body.Merchant + "/" + m.Body.Reference })
	k, err := key(schema.Message[Payment]{Record: &schema.Record{}, Body: Payment{"acme", "r-1"}})
	fmt.Println(k, err)
	// Output: acme/r-1 <nil>
}

func ExampleByPosition() {
	id, _ := base64.RawURLEncoding.DecodeString("kVp6oJ9WQmC0ZrGqUeVvEQ") // topic ids are shown like this by Kafka's tools
	k, err := schema.ByPosition[string]()(schema.Message[string]{Record: &schema.Record{
		ClusterID: "MkU3OEVBNTcwNTJENDM2Qg", Topic: "orders", TopicID: [16]byte(id), Partition: 3, Offset: 17,
	}})
	fmt.Println(k, err)
	// Output: MkU3OEVBNTcwNTJENDM2Qg/915a7aa0-9f56-4260-b466-b1aa51e56f11/orders/3@17 <nil>
}

func ExampleValueOf() {
	amount, _, _ := apd.NewFromString("10.00")
	for _, v := range []any{amount, uint64(18446744073709551615), "x", time.Unix(0, 1500).UTC(), nil} {
		value, err := schema.ValueOf(v)
		fmt.Println(string(value.Raw), value.Present(), err)
	}
	// Output:
	// 10.00 true <nil>
	// 18446744073709551615 true <nil>
	// x true <nil>
	// 1970-01-01T00:00:00.0000015Z true <nil>
	//  false <nil>
}

func ExampleJoinPath() {
	path := schema.JoinPath("buyer", "vat.id")
	fmt.Println(path, schema.SplitPath(path))
	// Output: buyer.vat\.id [buyer vat.id]
}
