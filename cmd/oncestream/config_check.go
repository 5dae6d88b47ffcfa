package main

import (
	"fmt"
	"strings"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema"
)

// check holds the rules that concern several fields, and completes what one
// field takes from another.
func (c *config) check(r *reader) {
	c.engine.Group = c.name
	if c.handler == "" {
		c.handler = c.name
	}
	c.checkKey(r)
	c.engine.Policy.RecordDuplicates = c.onDuplicate == "record"
	c.checkGuard(r)
	c.checkSignIn(r)
	c.decode.check(r)
	for i := range c.sinks {
		c.sinks[i].check(r)
	}
	if c.tls != nil {
		c.engine.Kafka.TLS, c.engine.Kafka.RenewTLS = c.tls.read(r, "kafka.tls"), c.tls.renew
	}
}

// checkKey holds that the key is made of exactly one thing.
func (c *config) checkKey(r *reader) {
	var given []string
	for _, name := range []string{"field", "header", "record_key", "position", "join"} {
		if _, ok := r.lines["key."+name]; ok {
			given = append(given, name)
		}
	}
	k := c.key
	chosen := k.field != "" || k.header != "" || k.recordKey || k.position || len(k.join) > 0
	switch {
	case len(given) > 1:
		r.failAt("key", "one of field, header, record_key, position and join (got %s)", strings.Join(given, " and "))
	case !chosen && !r.isFault("key"):
		r.failAt("key", "is required: one of field, header, record_key, position and join")
	case k.kind == "uuid" && (k.position || len(k.join) > 0):
		r.failAt("key.type", "neither several fields nor a position is a UUID: leave the type out")
	}
}

// byConstraint reports whether the first sink's table is the guard.
func (c *config) byConstraint() bool { return processor.Guard(c.guard) == processor.GuardConstraint }

// checkGuard refuses what needs the keys where none are written.
func (c *config) checkGuard(r *reader) {
	if !c.byConstraint() {
		return
	}
	if c.onDuplicate != "ignore" {
		r.failAt("on_duplicate", "must be ignore with guard: constraint, which knows nothing of the first time")
	}
	if c.engine.Keys.Retain > 0 {
		r.failAt("keys.retain", "has nothing to forget with guard: constraint, which writes no keys: leave it out")
	}
	if len(c.sinks) > 0 {
		s := &c.sinks[0]
		switch {
		case s.kind != "insert" || s.where != "":
			r.failAt("guard", "constraint needs an insert without a where as the first sink: its table tells what is new")
		case s.onConflict != "" && s.onConflict != "duplicate":
			r.failAt(s.path+".on_conflict", "must be duplicate with guard: constraint (got %s)", s.onConflict)
		}
	}
}

func (c *config) checkSignIn(r *reader) {
	sasl := c.engine.Kafka.SASL
	switch {
	case sasl.Mechanism != "" && sasl.User == "" && !r.isFault("kafka.sasl"):
		r.failAt("kafka.sasl.user", "is required (here, or by ONCESTREAM_KAFKA_USER)")
	case sasl.Mechanism == "" && sasl.User != "" && !r.isFault("kafka.sasl"):
		r.failAt("kafka.sasl.mechanism", "is required where there is a user")
	}
}

// check holds the rules of a sink's columns.
func (s *sinkConfig) check(r *reader) {
	for name, list := range map[string]columns{"columns": s.columns, "key": s.key, "add": s.add, "params": s.sql.params} {
		at := s.path + "." + name
		seen := map[string]bool{}
		for _, c := range list {
			path := join(at, c.name)
			if seen[c.name] {
				r.failAt(path, "is there twice")
			}
			seen[c.name] = true
			if c.value != nil && name == "key" {
				r.failAt(path, "must be a field (got %s)", c.value.Raw)
			}
			if c.typ != "" && name != "params" {
				r.failAt(join(path, "type"), "is for the parameters of sql: a column has the type that its table gives it")
			}
		}
	}
}

// keyFields returns the fields that the key is made of.
func (c *config) keyFields() []string {
	if c.key.field != "" {
		return []string{c.key.field}
	}
	return c.key.join
}

// keySources returns what the key is made of, as columns name it.
func (c *config) keySources() []string {
	switch k := c.key; {
	case k.position:
		return []string{"$topic", "$partition", "$offset"}
	case k.recordKey:
		return []string{"$key"}
	case k.header != "":
		return []string{"$header." + k.header}
	}
	return c.keyFields()
}

// keyFunc returns the function that derives the key.
func (c *config) keyFunc() schema.KeyFunc[schema.Row] {
	var parts []schema.KeyPart[schema.Row]
	switch k := c.key; {
	case k.position:
		return schema.ByPosition[schema.Row]()
	case k.recordKey:
		parts = append(parts, schema.RecordKeyPart[schema.Row]())
	case k.header != "":
		parts = append(parts, schema.HeaderPart[schema.Row](k.header))
	default:
		for _, path := range c.keyFields() {
			parts = append(parts, schema.FieldPart(path))
		}
	}
	if c.key.kind == "uuid" {
		return schema.AsUUID(parts[0])
	}
	return schema.Join(parts...)
}

// sameName is a column whose field has its name; a dot in the name does not
// lead into an object.
func sameName(name string) column {
	return column{name: name, field: schema.JoinPath(name)}
}

// at returns the place of a field in the file, for what the database finds
// wrong.
func (c *config) at(path, format string, args ...any) fault {
	line := lineOf(c.lines, path)
	return fault{source: fmt.Sprintf("%s:%d", c.file, line), line: line, path: path, text: fmt.Sprintf(format, args...)}
}
