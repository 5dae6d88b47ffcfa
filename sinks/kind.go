package sinks

// Kind says what becomes of a sink's effects if a batch is applied twice, with
// no idempotency key to keep the second time away.
type Kind string

// The kinds, from the one that needs no guard to the one of which nothing is
// known.
const (
	// SetState sets what a message says: twice is once. Upsert and Delete.
	SetState Kind = "set-state"
	// InsertOnce appends, and a unique constraint of the table refuses the second
	// time. An Insert whose duplicates are told, or ignored.
	InsertOnce Kind = "insert-once"
	// Accumulate adds once more each time. Sum, Ledger, and an Insert whose
	// duplicates are errors: whether the table's constraints would refuse the
	// second row is not known, for nothing ties them to the key.
	Accumulate Kind = "accumulate"
	// Opaque is code that cannot be looked into. Each, Batch, and the sinks of
	// users.
	Opaque Kind = "opaque"
)

// Kinder is a sink that knows its kind. Sinks of users may implement it too.
type Kinder interface {
	// Kind returns the sink's kind. Before Prepare, what depends on the table
	// counts as the worse.
	Kind() Kind
}

// KindOf returns the kind of a sink, Opaque where it does not say.
func KindOf(sink any) Kind {
	if k, ok := sink.(Kinder); ok {
		return k.Kind()
	}
	return Opaque
}

// worse reports whether k needs more of a guard than the other kind.
func (k Kind) worse(than Kind) bool { return k.rank() > than.rank() }

func (k Kind) rank() int {
	switch k {
	case SetState:
		return 0
	case InsertOnce:
		return 1
	case Accumulate:
		return 2
	default:
		return 3
	}
}

// Kind implements [Kinder].
func (s *Insert[T]) Kind() Kind {
	if s.guards() {
		return InsertOnce
	}
	return Accumulate
}

// Kind implements [Kinder].
func (*Upsert[T]) Kind() Kind { return SetState }

// Kind implements [Kinder].
func (*Delete[T]) Kind() Kind { return SetState }

// Kind implements [Kinder].
func (*Sum[T]) Kind() Kind { return Accumulate }

// Kind implements [Kinder].
func (*Ledger[T]) Kind() Kind { return Accumulate }
