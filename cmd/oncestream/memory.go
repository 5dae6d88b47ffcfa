package main

import "runtime/debug"

// garbagePercent is how much garbage there may be beside what is in use: Go's
// default of 100 lets a backlog of 8 partitions grow to 205 to 229 MiB resident,
// 50 keeps it at 168 to 181 for about one microsecond of CPU a record.
const garbagePercent = 50

// boundMemory has garbage collected earlier than Go does, unless the environment
// says when (GOGC, see package runtime).
func (a *app) boundMemory() {
	if _, set := a.env("GOGC"); !set {
		debug.SetGCPercent(garbagePercent)
	}
}
