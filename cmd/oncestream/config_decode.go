package main

import (
	"errors"
	"strings"
	"time"

	"github.com/oncestream/oncestream/schema"
	"github.com/oncestream/oncestream/schema/registry"
)

// decodeConfig says how a record's value is read.
type decodeConfig struct {
	format                     string
	url, user, password, token string
	timeout, unknownFor        time.Duration
	tls                        tlsFiles
	registry                   *registry.Registry // nil where the file names none
}

func decodeFields(d *decodeConfig) []field {
	return []field{
		{
			path: "decode.format", value: &d.format, def: "json", choices: []string{"json", "avro", "protobuf"},
			doc: "What a record's value is. `json`: one object, read strictly, with every digit kept. `avro` and `protobuf` are read by their schema in a registry; " +
				"`json` with a registry has the same frame of 5 bytes before it.",
		},
		{
			path: "decode.registry.url", value: &d.url, env: "ONCESTREAM_REGISTRY_URL",
			doc: "The address of a schema registry, such as `https://registry:8081`; several are joined by commas. Required for `avro` and `protobuf`. While it does not answer, records that need it wait.",
		},
		{path: "decode.registry.user", value: &d.user, noDefault: "none", env: "ONCESTREAM_REGISTRY_USER", doc: "The user."},
		{path: "decode.registry.password", value: &d.password, noDefault: "none", env: "ONCESTREAM_REGISTRY_PASSWORD", secret: true, doc: "The password."},
		{path: "decode.registry.token", value: &d.token, noDefault: "none", env: "ONCESTREAM_REGISTRY_TOKEN", secret: true, doc: "A bearer token, in place of user and password."},
		{path: "decode.registry.timeout", value: &d.timeout, def: "5s", doc: "How long one request may take."},
		{path: "decode.registry.unknown_for", value: &d.unknownFor, def: "1m", doc: "How long it is remembered that the registry does not know a schema. Records of such a schema are at fault."},
		{path: "decode.registry.tls.ca", value: &d.tls.ca, noDefault: "the system's", doc: "The file with the authorities that sign the registry's certificate."},
		{path: "decode.registry.tls.cert", value: &d.tls.cert, noDefault: "none", doc: "The file with this client's certificate, where the registry asks for one."},
		{path: "decode.registry.tls.key", value: &d.tls.key, noDefault: "none", doc: "The file with the key of that certificate."},
		{path: "decode.registry.tls.server_name", value: &d.tls.serverName, noDefault: "the registry's host", doc: "The name that the registry's certificate is checked against."},
	}
}

// check opens the registry, which asks it nothing.
func (d *decodeConfig) check(r *reader) {
	if d.url == "" {
		if _, given := r.lines["decode.registry"]; (given || d.format != "json") && !r.isFault("decode") {
			r.failAt("decode.registry.url", "is required (here, or by ONCESTREAM_REGISTRY_URL): %s is read by its schema", d.format)
		}
		return
	}
	o := registry.Options{URL: d.url, User: d.user, Password: d.password, Token: d.token, Timeout: d.timeout, UnknownFor: d.unknownFor}
	if _, given := r.lines["decode.registry.tls"]; given {
		o.TLS = d.tls.read(r, "decode.registry.tls")
	}
	var err error
	if d.registry, err = registry.Open(o); err != nil {
		for _, one := range unjoin(err) {
			r.failAt("decode.registry", "%s", strings.TrimPrefix(one.Error(), "registry: "))
		}
	}
}

// unjoin returns the errors that were joined.
func unjoin(err error) []error {
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// decoder returns what reads the fields of a record.
func (d *decodeConfig) decoder(fields *schema.Fields) schema.Decoder[schema.Row] {
	switch {
	case d.registry == nil:
		return schema.Rows(fields)
	case d.format == "avro":
		return d.registry.Avro(fields)
	case d.format == "protobuf":
		return d.registry.Protobuf(fields)
	}
	return d.registry.JSON(fields)
}

// plainJSON reports whether a payload is JSON and nothing else.
func (d *decodeConfig) plainJSON() bool { return d.registry == nil }
