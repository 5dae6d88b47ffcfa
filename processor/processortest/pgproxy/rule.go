package pgproxy

import "time"

// Rule decides what happens to a message. It is called for each message, in its
// order within a connection and from several goroutines at once.
type Rule func(Message) Action

// Action is what happens to a message. The zero Action lets it pass.
type Action struct {
	// Hold keeps the message, and those behind it, for so long; the link being
	// cut ends it early.
	Hold time.Duration
	// Do, if set, is called before the message goes on: to kill a process, for
	// one. The message waits for it.
	Do func()
	// SQL and Tag, if set, replace the statement of a 'Q' or 'P' and the tag of a
	// 'C' from the server: to have a program meet a server that does not do what
	// it was told.
	SQL, Tag string
	// Instead, if set, is sent in the message's place: whole messages.
	Instead []byte
	// Cut says where the connection ends.
	Cut Cut
}

// Cut is where a connection ends.
type Cut int

// The places of a cut: none, before the message, in the middle of it, after it.
const (
	CutNowhere Cut = iota
	CutBeforeMessage
	CutInsideMessage
	CutAfterMessage
)

// The common actions.
var (
	Pass      = Action{}
	CutBefore = Action{Cut: CutBeforeMessage}
	CutInside = Action{Cut: CutInsideMessage}
	CutAfter  = Action{Cut: CutAfterMessage}
)

// Link is how the bytes travel. The zero Link is as good as the machine.
type Link struct {
	// Latency is added to each message, in each direction.
	Latency time.Duration
	// Slice sends messages in pieces of so many bytes. Defaults to whole ones.
	Slice int
}
