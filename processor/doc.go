// Package processor runs a pipeline: it reads a Kafka topic as a member of a
// consumer group and writes the effects of its messages to PostgreSQL, so that
// each effect happens once although a broker delivers at least once.
//
// # The promise
//
// Each batch of one partition is one transaction, see [Pipeline] and batch.go:
//
//	begin
//	1  advance  move the claim's offset, if epoch and offset are still ours
//	2  admit    look for the idempotency keys, write the others under their primary key
//	3  apply    write the effects of the messages whose key was new
//	4  close    set aside what cannot be handled, keep results, count
//	commit
//	publish     tell Kafka the offset, for lag tools; nothing reads it
//
// A batch of which another partition writes a key at the same moment is rolled back
// and done once more, by an insert that waits for the other: see contention.go.
//
// Effects in the one database happen exactly once, for the log as it is read.
// Everything outside the database happens at least once, with the same
// idempotency key each time.
//
// # The parts
//
//	Run ── engine ──┬─ worker ── queue     one per assigned partition
//	                │    └─ transactor     at most Concurrency at once
//	                └─ groupSource         the one goroutine that polls
//
// A worker lives as long as one assignment of its partition:
//
//	         ┌────────────── superseded, after a pause ─────────────┐
//	         v                                                      │
//	assigned ──> claiming ──> seeking ──> working ──> (commit lost) ┤
//	                │                      │   ^          │         │
//	                │ other topic          │   └ resolved ┘         │
//	                v                      v                        │
//	              halted <── own fault, systemic, doubt of the log  │
//	                                       └── fenced, went back ───┘
//
//	revoked, lost, stopped: the batch in work is finished within DrainTimeout,
//	then the partition is let go, from any state.
//
// # What becomes of an error
//
//	class          SQLSTATE or kind                  what is done
//	outage         08 40 53 55 57 58 25006, network  again, for ever, with backoff
//	own fault      21 22 23 42 54, Permanent(),      find the message, set it aside as a dead
//	               decode, key                       letter, pass the others; or as Policy says
//	contested      ErrKeyContested, Contested() of   once more at once, by an insert of the keys
//	               package schema from a sink        and a sink that is told of no first try
//	unavailable    Unavailable(), from a decoder     again, for ever, with backoff
//	               or a sink
//	systemic       42P01 42501 42703 42883 …         the partition halts; no message is blamed
//	uncertain      anything else                     again, Retry.Attempts times, then halt
//	superseded     ErrFenced, ErrWentBack            drop what was read, claim again
//	unknown        COMMIT without an answer          claim again on a new connection and look
//
// # Halts
//
// A halted partition writes nothing and holds up no other, and the process stays
// alive. Its [Halt] is in the log, in the ledger, in [Hooks].Halted and in
// [Processor.Health]: a code, the offsets in doubt, and the command that resolves
// it. The worker looks once a second whether a person has decided, and claims
// again; so does a restart. N is the stored offset.
//
//	code               when                                 in doubt      oncestream offsets …
//	topic_recreated    the stored offset is of another      [0, N) of     adopt --to-offset earliest
//	                   topic of this name                   the new one
//	other_cluster      it is of another cluster             the same      adopt --to-offset earliest
//	retention_passed   the log begins behind it             [N, start)    skip --to-offset START
//	log_truncated      its leader epoch ends before it      [cut, N)      rewind --to-offset CUT
//	                   (KIP-320)
//	beyond_end         the log ends before it               [end, N)      rewind --to-offset END
//	decode, check, …   a message's own fault, where the     that record   skip --to-offset N+1
//	                   policy halts; see schema.Reason
//	systemic           the set-up is wrong                  nothing       rewind --to-offset N, which
//	retries_exhausted  an error of unknown kind stays       nothing       opens it where it stands,
//	dead_letter_rate   too many would be dead letters       nothing       once the cause is put right
//
// The log is looked at when a partition is claimed, before anything is fetched.
// What a broker answers to a fetch (out of range, data loss) only ends the claim,
// and the next one looks. A database that went back is no halt: what it has lost is
// redone, see [Hooks].WentBack. A partition that was added is read from its
// beginning.
//
// # Files
//
//	processor.go         New, Run, RunToEnd
//	config.go, source_config.go   every field with its meaning, unit and default
//	pipeline.go          Sink and Pipeline; pipeline_erased.go ends the generics
//	batch_records.go     what one transaction handles
//	batch.go             THE transaction; tx.go COMMIT's outcomes
//	attempt.go           one try at a batch: keys, effects, duplicates, dead letters
//	guard.go             the ledger's keys, or a constraint of the sink's own table
//	contention.go        when keys are copied, and when inserted
//	isolate.go           which message is at fault
//	patience.go          what another partition may still put right
//	policy.go            what becomes of it; deadletters.go what becomes of it later
//	worker.go            one partition under one assignment
//	halt.go              the codes of a halt; follow.go has a halted worker go on
//	position.go          what the log must hold; source_bounds.go asks for it
//	source_identity.go   one session for each topic of the name
//	health.go            Health
//	watch.go             the claims of all workers compared with the ledger, now and then
//	queue.go             between the poll loop and a worker
//	engine.go            all workers, claims, the drain
//	classify.go          what an error means
//	replay.go            Replay; source_range.go reads its range
//	purge.go             forgets keys by their age
//	verify.go            Verify: the proofs, in scratch schemas; cut.go cuts connections
//	forecast.go          when retention reaches the stored offset
//	instance.go          the instance id that a killed process has again
//	source_*.go          the only files that speak to Kafka
//	hooks.go             how metrics, logs and tests look in
//
// # Invariants that are not obvious
//
// Each is followed by what goes wrong without it.
//
//   - The advance is the first statement. As the last one it would fence a zombie
//     only after it had locked keys and effects, and two owners would deadlock.
//   - The advance compares the offset, not only the epoch. After a failover two
//     workers can hold one epoch; the offset still lets only one of them pass.
//   - A claim is one statement that waits for the row. A claim that selects first
//     starts behind its predecessor's last batch.
//   - Claims are compared with the ledger also while there is nothing to advance.
//     After a failover that lost the last commits, or a rewind, a worker at the
//     end of the log would wait with what is to be done again for the next record,
//     which may never come.
//   - The handler is registered again when the database went back. Gone back to a
//     moment before the handler, it gives the same number to the next one, and
//     each takes the other's keys for its own.
//   - A server that takes no writes costs the pool all its connections. They work,
//     so they would be kept, to a standby, when the address has long moved.
//   - The claim moves only when COMMIT has answered. Moved before, a lost COMMIT
//     skips a batch.
//   - FATAL is no answer to COMMIT. The server may end a session after the commit
//     is durable; taken for an abort the batch would be refused by the compare of
//     the offset, taken for a commit it might be lost.
//   - After a lost COMMIT the claim is taken again, not looked at. The server may
//     still be committing; a plain select would read the row from before.
//   - A poll is routed while rebalances wait. A record polled under one assignment
//     and routed under the next would be stored as a jump of the position.
//   - The queue is closed until the position is set. A fetch that was under way
//     when the partition came back would otherwise be taken for the claim's next.
//   - Pause and resume happen in the polling goroutine. Paused by one goroutine
//     and resumed by another, the flag and the client disagree, and a partition
//     is dead or a queue without bound.
//   - A partition that is assigned is resumed by its new worker. kgo keeps the
//     pause of a partition that leaves and returns.
//   - Transaction markers are polled too. Without them the stored offset stays one
//     short of the end of a transactional topic, and its lag never becomes 0.
//   - The transaction's context is not the assignment's. Cancelled by a revoke, a
//     batch that was about to commit would be done again elsewhere.
//   - A budget ends the drain by aborting, not by waiting. The next owner's claim
//     waits for our row lock.
//   - A dead letter is written by the transaction that passes its offset. Written
//     before or after, a kill in between loses it or doubles it.
//   - A dead letter's key is not kept. Kept, its replay would be a duplicate.
//   - A repeat of a message that is set aside is judged anew. Taken for its
//     duplicate, the outcome would depend on how batches are cut.
//   - Who resolves dead letters locks the partition's row first. Else a record
//     could be parked behind a dead letter that was just replayed, for ever.
//   - A share of dead letters above the policy's halts before anything of the
//     batch is written. An outage that looks like bad messages would drain the
//     topic.
//   - A list of log ends that other partitions asked for too may be older than the
//     claim. Its predecessor may have read beyond that end, and a healthy
//     partition would halt; what halts is asked for again.
//   - A topic that was created again ends the session. The client never takes up
//     the new id, and would fetch by the old one for ever.
//   - A broker that does not know a leader epoch does not get it from us. The
//     client would take the answer for a truncation of the whole log.
//   - An instance id is chosen by a lock that dies with the process. Chosen by a
//     number that is stored, a restart and a second process look alike, and the
//     group either waits for a dead member or has two of one name.
//   - A static member of a cooperative group joins twice. Killed after it has let
//     go of a partition and before it joins again, it comes back without a
//     rebalance, and the partition has no owner.
//   - Kafka's committed offset replaces nothing. Read even once (a first start, a
//     missing row), it skips what its commit has run ahead of.
package processor
