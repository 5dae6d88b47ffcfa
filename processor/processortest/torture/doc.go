// Package torture runs a pipeline in real processes, does everything to them
// that happens to programs, brokers and databases, and has package check judge
// what is left. It is the command `oncestream torture`.
//
//	producer ──> broker ──> workers (the program itself) ──> proxies ──> PostgreSQL
//	                ▲            ▲                              ▲            ▲
//	                └────────────┴────── schedule of faults ────┴────────────┘
//
// A run has four phases: everything is started; faults strike while the producer
// sends; everything is healed and the producer stops; what is left is handled.
// Then the log and the tables are read, and the history is judged.
//
// # The seed
//
// The seed decides what is sent and which faults strike in which order. When
// exactly they strike is the machine's to decide, so a seed does not repeat a run
// to the message; the history, which is kept, can be judged again.
//
// # What watches
//
// The chain of transactions is written by a trigger on the ledger's own table, so
// the program cannot forget it. A reader looks at the tables in one snapshot all
// the time. What COMMITs went unanswered is known to the proxies, and what became
// of them to the workers' logs.
package torture
