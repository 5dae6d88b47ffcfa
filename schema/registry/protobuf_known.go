package registry

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/oncestream/oncestream/schema"
)

// wellKnown returns what gives the value of a well-known type, nil for all other
// messages. A type counts by its name and its file, for the schemas of the
// registry may declare what they like; the file is Google's, see loadProto.
func wellKnown(md protoreflect.MessageDescriptor) func(protoreflect.Message) (schema.Value, error) {
	file := md.ParentFile().Path()
	if !strings.HasPrefix(file, "google/protobuf/") {
		return nil
	}
	switch strings.TrimSuffix(strings.TrimPrefix(file, "google/protobuf/"), ".proto") + "." + string(md.Name()) {
	case "timestamp.Timestamp":
		return timestampValue
	case "duration.Duration":
		return durationValue
	case "struct.Value":
		return kindValue
	case "struct.Struct", "struct.ListValue":
		return wrapped
	}
	if file == "google/protobuf/wrappers.proto" {
		return wrapped
	}
	return nil
}

// wrapped returns the value of the one field that the message has.
func wrapped(m protoreflect.Message) (schema.Value, error) {
	fd := m.Descriptor().Fields().Get(0)
	return fieldValue(fd, m.Get(fd))
}

// kindValue returns the value of google.protobuf.Value, which holds one of
// several kinds; one that holds none is null.
func kindValue(m protoreflect.Message) (schema.Value, error) {
	fd := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if fd == nil {
		return null(), nil
	}
	return fieldValue(fd, m.Get(fd))
}

// parts returns the seconds and nanoseconds of a Timestamp or Duration.
func parts(m protoreflect.Message) (seconds, nanos int64) {
	fields := m.Descriptor().Fields()
	return m.Get(fields.ByNumber(1)).Int(), m.Get(fields.ByNumber(2)).Int()
}

// Limits that timestamp.proto and duration.proto set: the years 0001 to 9999,
// and ten thousand years.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300799
	mostSeconds = 315576000000
	second      = int64(time.Second)
)

func timestampValue(m protoreflect.Message) (schema.Value, error) {
	seconds, nanos := parts(m)
	if seconds < firstSecond || seconds > lastSecond || nanos < 0 || nanos >= second {
		return schema.Value{}, fmt.Errorf("no such Timestamp: %d seconds and %d nanoseconds", seconds, nanos)
	}
	return timeValue(time.Unix(seconds, nanos), stampLayout), nil
}

// durationValue writes seconds only, for a Duration has no days and no months.
func durationValue(m protoreflect.Message) (schema.Value, error) {
	seconds, nanos := parts(m)
	negative := seconds < 0 || nanos < 0
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	if seconds < 0 || seconds > mostSeconds || nanos < 0 || nanos >= second {
		return schema.Value{}, errors.New("no such Duration: its seconds and nanoseconds differ in sign or are too many")
	}
	b := []byte("PT")
	if negative {
		b = append(b, '-')
	}
	b = strconv.AppendInt(b, seconds, 10)
	if nanos > 0 {
		b = append(b, strings.TrimRight(fmt.Sprintf(".%09d", nanos), "0")...)
	}
	return text(append(b, 'S')), nil
}
