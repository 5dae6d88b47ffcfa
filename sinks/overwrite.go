package sinks

// overwriter is a sink that can tell whether a message handled out of order, as
// a dead letter is when it is replayed, would overwrite what a later message has
// set. It is the interface that package processor asks for.
type overwriter interface{ Overwrites() bool }

// overwrites asks a sink. One that does not know appends or adds, in any order,
// or is code of the user's, who is not second-guessed.
func overwrites(sink any) bool {
	o, ok := sink.(overwriter)
	return ok && o.Overwrites()
}

// Overwrites reports true unless a Version tells what is newer.
func (s *Upsert[T]) Overwrites() bool { return s.Version == "" }

// Overwrites reports true: a delete that comes late deletes what was written
// since.
func (*Delete[T]) Overwrites() bool { return true }

// Overwrites reports whether one of the parts does.
func (t *TeeSink[T]) Overwrites() bool {
	for _, s := range t.sinks {
		if overwrites(s) {
			return true
		}
	}
	return false
}

// Overwrites is the sink's own.
func (r *RefreshSink[T]) Overwrites() bool { return overwrites(r.sink) }

// Overwrites is the sink's own.
func (w *WhereSink[T]) Overwrites() bool { return overwrites(w.sink) }
