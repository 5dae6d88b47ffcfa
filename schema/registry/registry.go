package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/oncestream/oncestream/schema"
)

// Registry holds the schemas of a schema registry by their ids. A schema is
// asked for when its id is first met and then kept, for an id never changes its
// schema. It is safe for use by several goroutines at once.
type Registry struct {
	web    *http.Client
	client *sr.Client
	avro   *cache[*avro.Schema]
	proto  *cache[protoreflect.FileDescriptor]
}

// Open checks the options and returns the registry. It sends no request: a
// registry that is down now is found by the first record that needs a schema.
// An error names every option that is wrong.
func Open(o Options) (*Registry, error) {
	urls, err := o.urls()
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.UnknownFor == 0 {
		o.UnknownFor = defaultUnknownFor
	}
	r := &Registry{}
	if r.web, r.client, err = o.client(urls); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	r.avro = newCache(o.UnknownFor, r.loadAvro)
	r.proto = newCache(o.UnknownFor, r.loadProto)
	return r, nil
}

// Close lets go of idle connections. Decoders must not be used after it.
func (r *Registry) Close() { r.web.CloseIdleConnections() }

// byID asks for the schema of an id, which must be of the given type.
func (r *Registry) byID(ctx context.Context, id uint32, want sr.SchemaType) (sr.Schema, error) {
	s, err := r.client.SchemaByID(ctx, int(id))
	if err := answer(err, s, "register it again under this id, or correct the producer"); err != nil {
		return s, err
	}
	if s.Type != want {
		return s, fmt.Errorf("its type is %v, and this decoder reads %v", s.Type, want)
	}
	return s, nil
}

// source is a schema that another one refers to by name.
type source struct{ name, text string }

// references returns what s refers to, directly and by others, each once and
// after those that it refers to itself.
func (r *Registry) references(ctx context.Context, s sr.Schema) ([]source, error) {
	ctx = sr.WithParams(ctx, sr.ShowDeleted) // what is deleted for producers still describes old records
	var found []source
	seen := make(map[string]bool)
	var visit func(refs []sr.SchemaReference) error
	visit = func(refs []sr.SchemaReference) error {
		for _, ref := range refs {
			if seen[ref.Name] {
				continue
			}
			seen[ref.Name] = true
			next, err := r.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
			if err := answer(err, next.Schema, "register it again"); err != nil {
				return fmt.Errorf("reference %q (subject %q, version %d): %w", ref.Name, ref.Subject, ref.Version, err)
			}
			if err := visit(next.References); err != nil {
				return err
			}
			found = append(found, source{ref.Name, next.Schema.Schema})
		}
		return nil
	}
	return found, visit(s.References)
}

// answer tells what the registry does not know from a registry that does not
// answer. Only its own error codes say the former: a proxy or a web server at
// the wrong address says 404 to everything, which would make dead letters of a
// whole topic.
func answer(err error, s sr.Schema, remedy string) error {
	refused, ok := errors.AsType[*sr.ResponseError](err)
	switch {
	case ok && unknownCode(refused.ErrorCode):
		return fmt.Errorf("the registry does not know it (%.200q): %s", refused.Message, remedy)
	case ok && refused.StatusCode == http.StatusNotFound:
		return schema.Unavailable(fmt.Errorf("%s answers 404 without a registry's error code: is this a schema registry?", refused.URL))
	case ok:
		return schema.Unavailable(fmt.Errorf("%s answers %d: %.200q", refused.URL, refused.StatusCode, refused.Error()))
	case err != nil:
		return schema.Unavailable(err)
	case s.Schema == "":
		return schema.Unavailable(errors.New("the answer holds no schema: is this a schema registry?"))
	}
	return nil
}

// unknownCode reports whether a registry's error code says that the schema, the
// subject or the version does not exist.
func unknownCode(code int) bool {
	return code == sr.ErrSchemaNotFound.Code || code == sr.ErrSubjectNotFound.Code || code == sr.ErrVersionNotFound.Code
}
