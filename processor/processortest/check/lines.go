package check

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A history file has one JSON object a line, {"kind": …, "is": …}, so that it can
// be written while the run goes on, and is readable as far as it goes.

// Write writes the history as lines.
func (h *History) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	var err error
	line := func(kind string, is any) {
		if err == nil {
			err = encoder.Encode(struct {
				Kind string `json:"kind"`
				Is   any    `json:"is"`
			}{kind, is})
		}
	}
	line("run", h.Run)
	for kind, list := range h.lists() {
		list.each(func(is any) { line(kind, is) })
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("check: write the history: %w", err)
	}
	return nil
}

// Read reads lines that Write has written. A line of a kind that is not known is
// an error: a judge that overlooks something must not say that all is well.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	lists := h.lists()
	decoder := json.NewDecoder(bufio.NewReader(r))
	for n := 1; ; n++ {
		var line struct {
			Kind string          `json:"kind"`
			Is   json.RawMessage `json:"is"`
		}
		err := decoder.Decode(&line)
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return h, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("check: the history is empty")
		case err != nil:
			return nil, fmt.Errorf("check: line %d of the history: %w", n, err)
		case line.Kind == "run":
			err = json.Unmarshal(line.Is, &h.Run)
		default:
			list, ok := lists[line.Kind]
			if !ok {
				return nil, fmt.Errorf("check: line %d of the history: %q is of no kind that is known here", n, line.Kind)
			}
			err = list.add(line.Is)
		}
		if err != nil {
			return nil, fmt.Errorf("check: line %d of the history (%s): %w", n, line.Kind, err)
		}
	}
}

// list is a list of the history, whatever its elements.
type list interface {
	each(func(any))
	add(json.RawMessage) error
}

type listOf[E any] struct{ elements *[]E }

func (l listOf[E]) each(f func(any)) {
	for _, e := range *l.elements {
		f(e)
	}
}

func (l listOf[E]) add(raw json.RawMessage) error {
	var e E
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	*l.elements = append(*l.elements, e)
	return nil
}

func (h *History) lists() map[string]list {
	return map[string]list{
		"record": listOf[Record]{&h.Records}, "pass": listOf[Pass]{&h.Passes}, "change": listOf[Change]{&h.Changes},
		"append": listOf[Append]{&h.Appended}, "balance": listOf[Balance]{&h.Balances}, "counter": listOf[Counter]{&h.Counters},
		"dead letter": listOf[DeadLetter]{&h.DeadLetters}, "position": listOf[Position]{&h.Positions}, "fault": listOf[Fault]{&h.Faults},
		"commit": listOf[Commit]{&h.Commits}, "halt": listOf[Halt]{&h.Halts}, "sample": listOf[Sample]{&h.Samples},
		"exit": listOf[Exit]{&h.Exits},
	}
}
