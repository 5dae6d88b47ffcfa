package sinks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/sinks"
)

// computed is what an expression comes to for a payload, or the text of its error.
func computed(t *testing.T, expression, payload string) string {
	t.Helper()
	paths, err := sinks.ExpressionPaths(expression)
	if err != nil {
		return err.Error()
	}
	fields := schema.NewFields(paths...)
	column, err := sinks.Computed("c", expression, fields)
	if err != nil {
		return err.Error()
	}
	m := batch(t, fields, "k="+payload)[0]
	m.Headers = []schema.Header{{Key: "trace-id", Value: []byte("t1")}}
	v, err := column.Value(&m)
	if err != nil {
		return err.Error()
	}
	if v.Kind == schema.Null {
		return "null"
	}
	return string(v.Raw)
}

// Proves what expressions come to: numbers keep every digit, null is not passed
// through in silence, and operands of the wrong type are the message's fault,
// with the place in the expression.
func TestExpressions(t *testing.T) {
	payload := `{"amount":0.1,"n":10,"big":9007199254740993,"name":"Ünal","none":null,"ok":true,"a b":1,"at":"2026-03-01T00:30:00+01:00",
		"order":{"id":7,"lines":[{"sku":"x","qty":2},{"sku":"y","qty":3}]},"tags":["red","blue"],"huge":1e99999,"digits":"12.50"}`
	for expression, want := range map[string]string{
		"amount + 0.2":    "0.3",
		"amount * 3":      "0.3",
		"1.50 + 1.50":     "3.00",
		"big + 1":         "9007199254740994",
		"big * big * big": "730750818665451702490757660178213618792745926657",
		"12345678901234567.123456789012345678 + 0": "12345678901234567.123456789012345678",
		"n / 4":                             "2.5",
		"n / 3":                             `t/0@0: value_range: field n / 3: at 1:3: 10 / 3 does not come out even: use div(a, b, digits)`,
		"div(n, 3, 2)":                      "3.33",
		"div(-5, 2, 0)":                     "-3",
		"round(2.345, 2)":                   "2.35",
		"round(-2.345, 2)":                  "-2.35",
		"n / 0":                             "t/0@0: value_range: field n / 0: at 1:3: division by zero",
		"n % 0":                             "t/0@0: value_range: field n % 0: at 1:3: division by zero",
		"n % 3":                             "1",
		"-n + +1":                           "-9",
		"huge + 1":                          "t/0@0: value_range: field huge + 1: at 1:1: a number has more than 2000 digits",
		`dec("1e1999") * dec("1e1999")`:     "at 1:15: a number has more than 2000 digits",
		"floor(-1.5) + ceil(1.2) + abs(-1)": "1",
		"min(n, 3) + max(n, 3)":             "13",
		"none":                              "null",
		"missing":                           "null",
		"none + 1":                          "t/0@0: value_type: field none + 1: at 1:6: null and a number cannot be added",
		"none * 2":                          "t/0@0: value_type: field none * 2: at 1:1: a number is needed, this is null",
		"(none ?? 0) + 1":                   "1",
		"none > 1":                          "t/0@0: value_type: field none > 1: at 1:6: null and a number have no order",
		"none == nil and missing == nil":    "true",
		"name == nil":                       "false",
		"has(none)":                         "true",
		"has(missing)":                      "false",
		`n == "10"`:                         `t/0@0: value_type: field n == "10": at 1:3: a number and a text cannot be compared`,
		"n == 10.0":                         "true",
		"n != 11 && !(n > 11) || false":     "true",
		`ok ? "yes" : "no"`:                 "yes",
		`n ? 1 : 2`:                         "t/0@0: value_type: field n ? 1 : 2: at 1:1: true or false is needed, this is a number",
		"false and n":                       "false",
		"name + \"!\"":                      "Ünal!",
		"upper(name)":                       "ÜNAL",
		"len(name)":                         "4",
		"name[0:2] + name[-1:]":             "Ünl",
		"name[2:1]":                         "",
		`replace(trim(" a-b "), "-", "+")`:  "a+b",
		`name matches "^Ü[a-z]+$"`:          "true",
		`name contains "na" and name startsWith "Ü" and name endsWith "l"`: "true",
		`name in ["x", "Ünal"]`: "true",
		`name not in ["x"]`:     "true",
		`"red" in tags`:         "true",
		`1 in tags`:             "t/0@0: value_type: field 1 in tags: at 1:3: a number and a text cannot be compared",
		"len(tags)":             "2",
		"tags[1] + tags[-2]":    "bluered",
		"tags[9]":               "null",
		"order.id + 1":          "8",
		"order.lines[1].qty * order.lines[0].qty":   "6",
		`order["lines"][0].nope`:                    "null",
		"order.lines[1]":                            `{"sku":"y","qty":3}`,
		"order.id.x":                                "null",
		`field("a b") + 1`:                          "2",
		"dec(digits) * 2":                           "25.00",
		"dec(name)":                                 `t/0@0: value_type: field dec(name): at 1:1: "Ünal" is no decimal number`,
		"text(amount) + text(ok)":                   "0.1true",
		"text(order)":                               `{"id":7,"lines":[{"sku":"x","qty":2},{"sku":"y","qty":3}]}`,
		"date(timestamp(at))":                       "2026-02-28",
		"timestamp(at)":                             "2026-02-28T23:30:00Z",
		`timestamp("2026-01-02T03:04:05Z") < $time`: "true",
		`timestamp(name)`:                           `t/0@0: value_type: field timestamp(name): at 1:1: "Ünal" is no timestamptz: it is not of the form "2006-01-02T15:04:05.999999Z"`,
		"$time":                                     "2026-01-02T03:04:05.678Z",
		"date($time)":                               "2026-01-02",
		`$topic + "/" + text($partition) + "@" + text($offset) + $key`: "t/0@0k",
		`header("trace-id") + ($header.nope ?? "-")`:                   "t1-",
		"$tombstone": "false",
		"[1, 2]":     "value_type: the expression is an array; it can only be the right side of in",
	} {
		if got := computed(t, expression, payload); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%s\n got %s\nwant %s", expression, got, want)
		}
	}
}

// Proves that what is wrong with an expression is said before the first message,
// with the place in it and the name that was probably meant.
func TestExpressionErrors(t *testing.T) {
	fields := schema.NewFields("amount", "currency", "order.id", "payload")
	for expression, want := range map[string]string{
		"amout + 1":                      `column "c": expression "amout + 1": at 1:1: no field "amout"; nearest is "amount"`,
		"amount +\n  currenzy":           `at 2:3: no field "currenzy"; nearest is "currency"`,
		"order.idd":                      `at 1:7: no field "order.idd"; nearest is "order.id"`,
		"$ofset":                         `at 1:1: no pseudo-field "$ofset"; nearest is "$offset"`,
		"amount +":                       `at 1:8: unexpected token EOF`,
		"now()":                          `at 1:1: no function now`,
		"rnd(amount, 2)":                 `at 1:1: no function rnd`,
		"rounds(amount, 2)":              `at 1:1: no function rounds; nearest is "round"`,
		"round(amount)":                  `at 1:1: round takes 2 arguments, not 1`,
		`1 + "a"`:                        `at 1:3: a number and a text cannot be added`,
		`true + amount`:                  `at 1:6: true or false and a field cannot be added`,
		`lower(1)`:                       `at 1:7: a text is needed, this is a number`,
		`not "a"`:                        `at 1:5: true or false is needed, this is a text`,
		`1 < "a"`:                        `at 1:3: a number and a text cannot be compared`,
		`amount matches currency`:        `at 1:16: the regular expression must be written out as a text`,
		`currency matches "("`:           "at 1:18: error parsing regexp",
		`2 ** 3`:                         `at 1:3: operator ** is no part of the language`,
		`{"a": 1}`:                       `at 1:1: this is no part of the language`,
		`let x = 1; x`:                   `this is no part of the language`,
		`0x10 + amount`:                  `at 1:1: 0x10 is no decimal number`,
		`header(amount)`:                 `at 1:1: header takes one name, written out as a text`,
		`has(1)`:                         `at 1:1: has takes the path of a field`,
		`amount in 1`:                    `at 1:11: an array is needed, this is a number`,
		`1 < amount < 2`:                 `at 1:5: this would be computed twice`,
		`amount ?: 2`:                    `at 1:1: this would be computed twice`,
		`amount.x()`:                     `no function amount.x`,
		strings.Repeat("1+", 6000) + "1": "exceeds maximum allowed nodes",
	} {
		_, err := sinks.Computed("c", expression, fields)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s\n got %v\nwant %s", expression, err, want)
		}
	}
	if _, err := sinks.Computed("c", "payload.a.b == order.id", fields); err != nil {
		t.Errorf("a mapped object may be looked into: %v", err)
	}
}

// Proves that the paths of an expression are those that the decoder must map,
// and that Paths has them too.
func TestExpressionPaths(t *testing.T) {
	column, err := sinks.Computed("c", `a + b.c * a > 1 and has(d) and field("e f") == $key`, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(sinks.Paths(sinks.Field("x", "x"), column, sinks.Field("y", "$key")), ","), "x,a,b.c,d,e f")
	if column, err = sinks.Computed("c", `$topic + "x"`, nil); err != nil || !column.OfRecord || len(sinks.Paths(column)) != 0 {
		t.Errorf("got %v, %v", column, err)
	}
}

// Proves that an expression reads a tombstone as fields that are missing.
func TestExpressionOfTombstone(t *testing.T) {
	fields := schema.NewFields("a")
	column, err := sinks.Computed("c", `$tombstone and a == nil ? "gone" : "here"`, fields)
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{"": "gone", `{"a":1}`: "here"} {
		v, err := column.Value(&batch(t, fields, "k="+payload)[0])
		if err != nil || string(v.Raw) != want {
			t.Errorf("%q: got %s, %v", payload, v.Raw, err)
		}
	}
}

// Proves that an expression over a field that the decoder does not map is a
// fault of the configuration and of no message.
func TestExpressionUnmapped(t *testing.T) {
	column, err := sinks.Computed("c", "a + 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = column.Value(&batch(t, schema.NewFields("b"), `k={"b":1}`)[0])
	if _, ok := asFault(err); ok || err == nil {
		t.Errorf("got %v", err)
	}
}

// BenchmarkComputed measures one expression of three operators.
func BenchmarkComputed(b *testing.B) {
	fields := schema.NewFields("amount", "currency")
	column, err := sinks.Computed("c", `amount * 1.19 > 100 and currency == "EUR"`, fields)
	if err != nil {
		b.Fatal(err)
	}
	m := batch(b, fields, `k={"amount":99.90,"currency":"EUR"}`)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := column.Value(&m); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzExpression proves that no text makes the compiler or a program panic, and
// that what it takes is as good the second time.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"a + 1", "a.b[0] ?? -1", `"x" in a`, "len(text(a)[1:2]) % 3", "a?.b", `header("x") matches "y"`, "a | lower()", "1e999", "min(a, 2) / 3", "[a][0]", "if a { 1 } else { 2 }"} {
		f.Add(s, `{"a":1.5}`)
	}
	f.Fuzz(func(t *testing.T, expression, payload string) {
		paths, err := sinks.ExpressionPaths(expression)
		if err != nil {
			return
		}
		fields := schema.NewFields(paths...)
		column, err := sinks.Computed("c", expression, fields)
		if err != nil {
			t.Fatal(err)
		}
		r := &schema.Record{Value: []byte(payload), Time: time.UnixMilli(0)}
		body, err := schema.Rows(fields)(t.Context(), r)
		if err != nil {
			return
		}
		m := schema.Message[schema.Row]{Record: r, Body: body}
		first, err := column.Value(&m)
		again, err2 := column.Value(&m)
		if string(first.Raw) != string(again.Raw) || (err == nil) != (err2 == nil) {
			t.Fatalf("%q, then %q", first.Raw, again.Raw)
		}
	})
}
