//go:build unix

package processortest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// output gathers what a process writes, line by line.
type output struct {
	closed chan struct{} // closed when there will be no more

	mu    sync.Mutex
	rest  []byte // the line that has not ended yet
	lines []string
	seen  int           // lines that find has passed
	more  chan struct{} // closed and replaced when a line is added
}

func newOutput() *output {
	return &output{closed: make(chan struct{}), more: make(chan struct{})}
}

// Write takes what the process wrote; it never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest = append(o.rest, b...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		o.add(line)
		o.rest = rest
	}
}

func (o *output) add(line []byte) {
	o.lines = append(o.lines, string(line))
	close(o.more)
	o.more = make(chan struct{})
}

// close says that the process has ended; its last line may lack its end.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 {
		o.add(o.rest)
	}
	close(o.closed)
}

// find returns the first match behind the line found before; with none it
// returns a channel that is closed when there are more lines.
func (o *output) find(pattern *regexp.Regexp) (match []string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, line := range o.lines[o.seen:] {
		if match := pattern.FindStringSubmatch(line); match != nil {
			o.seen += i + 1
			return match, nil
		}
	}
	return nil, o.more
}

func (o *output) tail(n int) string {
	lines := o.all()
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (o *output) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines)
}
