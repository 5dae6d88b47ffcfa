package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"github.com/oncestream/oncestream/processor"
)

// config is a pipeline file, read and checked as far as that goes without a
// database. [fileFields] describes it.
type config struct {
	file string
	// lines are the lines of the fields, for what only the database finds wrong.
	lines map[string]int

	name, handler string
	engine        processor.Config
	tls           *tlsFiles
	decode        decodeConfig
	key           keyConfig
	fingerprint   fingerprint
	onDuplicate   string
	guard         string
	http          httpConfig
	watch         watchConfig
	sinks         []sinkConfig
}

// keyConfig says what the idempotency key is made of; one of them is set.
type keyConfig struct {
	field, header       string
	recordKey, position bool
	join                []string
	kind                string
}

// lookup finds a variable of the environment, as os.LookupEnv does.
type lookup func(name string) (string, bool)

// loadConfig reads a pipeline file. Flags go over the environment, and the
// environment over the file. All that is wrong is reported at once.
func loadConfig(path string, flags map[string]string, env lookup) (*config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("read the pipeline file: %w", err)
	}
	c := &config{file: filepath.Base(path), tls: &tlsFiles{}}
	fields := fileFields(c)
	r := newReader(c.file, env)
	r.override(fields, flags)
	if err := r.read(text, fields); err != nil {
		return nil, err
	}
	c.lines = r.lines
	if _, encrypted := c.lines["kafka.tls"]; !encrypted {
		c.tls = nil
	}
	c.check(r)
	return c, r.faults.err()
}

// read parses the text and fills the fields. Only a text that is no YAML at
// all, of which nothing more can be said, is an error of its own.
func (r *reader) read(text []byte, fields []field) error {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return faults{r.syntaxFault(err)}
	}
	if len(file.Docs) > 1 && file.Docs[1].Body != nil {
		r.fail(file.Docs[1].Body.GetToken().Position.Line, "", "a second document: one file is one pipeline")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		r.fail(1, "", "the file is empty")
	} else {
		r.mapping("", "", file.Docs[0].Body, fields)
	}
	r.finish("", fields)
	return nil
}

func (r *reader) syntaxFault(err error) fault {
	line, text := 1, err.Error()
	if bad, ok := errors.AsType[yaml.Error](err); ok {
		line, text = bad.GetToken().Position.Line, bad.GetMessage()
	}
	return fault{source: fmt.Sprintf("%s:%d", r.file, line), line: line, text: "not valid YAML: " + text}
}
