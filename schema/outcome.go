package schema

import "fmt"

// Outcome is what a sink has to say of one message besides that it is done.
type Outcome struct {
	// Result is JSON to be kept beside the message's key, for a duplicate to be
	// given; nil where there is nothing to keep.
	Result []byte
	// Duplicate says that the effect was there already, although the key was
	// new: a unique constraint of the user's table has shown it. The sinks
	// behind this one must not see the message.
	Duplicate bool
	// Stale says that the target holds a newer state, which was left as it is.
	Stale bool
}

// Faults are the faults of several messages of one batch, so that a sink which
// finds them before it asks the database need not be called once for each.
type Faults []*Fault

// Error names the first fault and how many there are.
func (f Faults) Error() string {
	if len(f) == 1 {
		return f[0].Error()
	}
	return fmt.Sprintf("%d messages at fault, the first one %v", len(f), f[0])
}

// Unwrap returns the faults.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i := range f {
		errs[i] = f[i]
	}
	return errs
}

// Permanent reports true, as [Fault.Permanent] does.
func (f Faults) Permanent() bool { return true }

// AsError returns nil where there are no faults.
func (f Faults) AsError() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
