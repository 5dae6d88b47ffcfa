// Package offsets is the ledger: who may move a partition, how far it has come,
// and which idempotency keys have had their effect. It holds all SQL on the
// project's own tables and knows no Kafka.
//
// # The words
//
// A claim is the right to advance one partition. Each claim raises the epoch, a
// counter in the partition's row; the epoch is the fence. An advance moves
// next_offset, inside the transaction that writes the effects of the records it
// passes. A person changes a position by a rewind, a skip or an adopt. A key
// stands for a business event; it is admitted once for each handler, and what is
// not fresh is a duplicate or a conflict.
//
// One row of consumer_offset is the claim, the position and the account of one
// partition. One row of processed_message is a key. There is no other state: a
// [Ledger] may be dropped at any moment and made again.
//
// # A batch
//
// These are the statements, in this order, in one transaction at read committed:
//
//	begin
//	update consumer_offset … where epoch = mine and next_offset = from      [Ledger.AdvanceAndAdmit]
//	select … from processed_message where key = any (all)                   the same
//	copy processed_message … (those not found, in the order of the keys)    the same
//	the effects of what is fresh                                            the caller
//	update consumer_offset … the duplicates                                 [Ledger.Account]
//	commit
//
// The advance is first because it is the fence and the lock in one. It must
// change one row exactly; else the worker looks at the row, rolls back, and has
// wasted nothing. It keeps the row locked until the transaction ends, so that
// two owners are never both inside a partition's effects. And whoever waits for
// the row holds no key and no effect yet, so that an owner and a zombie, or an
// owner and a claimer, cannot deadlock.
//
// The keys come before the effects because an effect must know whether it is the
// first. The primary key decides that, never the select, which is only a shortcut:
// the copy waits for a transaction that is writing the same key, a select does not
// see it. Where that one commits, the copy is refused, and the transaction is over:
// the batch is contested, and is done again in another way, which asks the table
// as it writes. The keys are sorted, so that two transactions meet them in one
// order.
//
//	begin
//	update consumer_offset … where epoch = mine and next_offset = from      [Ledger.AdvanceAndAdmitContested]
//	insert into processed_message … order by key on conflict do nothing     the same
//	select … from processed_message where key = any (those not inserted)    the same
//	…
//
// That costs the server about one and a half times as much for random keys, twice
// for keys that are ordered by time: the check and the speculative insertion of
// on conflict do. In both ways the first two statements are sent in one round
// trip; the insert asks whether the advance has moved the row, so that a fenced
// worker locks no key. The same insert alone is [Ledger.Admit], for a transaction
// that does something between, and for one that advances nothing.
//
// # A partition's life
//
//	           Start                Claim
//	no row ─────────────▶ unclaimed ─────────▶ ┌────────────────┐ ──┐ Advance and COMMIT:
//	   │                  (epoch 0)            │     open       │   │ next moves
//	   └──────────────── Claim ──────────────▶ │ epoch e, owner │ ◀─┘
//	                                           └────────────────┘
//	                       COMMIT unanswered     │   │   │    ▲
//	unknown ◀────────────────────────────────────┘   │   │    │ epoch + 1,
//	   └────── Reclaim, if no one has claimed ───────┼───┼───▶│ whoever it is
//	                       Release                   │   │    │
//	released (owner null) ◀──────────────────────────┘   │    │
//	   └────── Claim ────────────────────────────────────┼───▶│
//	                       Halt                          │    │
//	halted (reason) ◀────────────────────────────────────┘    │
//	   └────── Claim ────────────────────────────────────────▶┘
//
// A person may set the position, in any of these states, by [Ledger.Apply]: to an
// offset before (rewind), behind (skip), or of another topic (adopt). It raises
// the epoch as a claim does, so that a worker which runs is fenced and claims
// again, and opens what is halted.
//
// Fenced is no state of the row but of a worker whose epoch is not the row's any
// more. It is final for that claim, and it is normal. A restored database puts
// the row back to an older state; to a worker who remembers more, it went back.
//
// # What can fail
//
//	FAILURE                          SEEN AS                   WHAT HAPPENS, AND WHY
//	crash before the advance         nothing                   nothing was written
//	crash after the advance,         the row stays locked      the server rolls back when it notices; a claim waits
//	  the keys or the effects          until the server knows    for that and finds the old offset: all of it is done
//	                                                             again, by the same keys
//	crash after COMMIT, before       nothing                   the next claim begins behind the batch, whatever
//	  Kafka was told                                             offset Kafka has: it is never asked
//	zombie: a worker that was        its advance changes no    ErrFenced. Nothing of it is left, and it has locked
//	  stopped wakes up                 row                       no key that the new owner needs
//	zombie that holds the row        55P03 in the claim        the server's timeouts end it; at last Holder names
//	                                                             its backend and Terminate ends that
//	COMMIT unanswered                an error that is not      Reclaim on a fresh connection: it waits for the old
//	                                   the server's              transaction, and then next_offset tells
//	Reclaim unanswered               ErrFenced when repeated   claim: the epoch that was taken is not known to us
//	Claim unanswered                 an error                  claim again, which fences the claim that was lost
//	failover that loses commits      ErrWentBack, or           effects, keys and offset were lost together: claim and
//	                                   ErrFenced                 fetch again. Two workers may hold one epoch; the
//	                                                             compare of the offset lets only one of them pass
//	restore of a backup              ErrWentBack               the same; a handler that is lost, too, registers again
//	the same, and nothing to         nothing, by an advance    Ledger.Check compares all claims now and then
//	  advance
//	topic deleted and created        Refusal topic_recreated   nothing is changed: the old offset in the new topic
//	  again                                                      would skip records; a person adopts it
//	another cluster                  Refusal other_cluster     the same
//	a person moves a position        ErrFenced                 its worker claims again and goes on there
//	a person comes too late, as the  RefusedChange             nothing is changed: what Plan saw is looked at again
//	  worker has moved meanwhile                                 with the row locked
//	clone of a database              OtherEnvironment          the start fails before it reads or writes anything
//	two first starts at once         false from Start          the first to insert the first partition decides all
//	                                                             of them; the second waits for that, and rolls back
//	key twice in a batch             Duplicate                 the lowest offset asks, the others share the answer
//	key in two partitions at once    the copy waits            rolled back: Fresh; committed: ErrKeyContested, and
//	                                                             the batch is done again with an insert
//	                                 the insert waits          committed: Duplicate; rolled back: Fresh
//	key committed after the look     ErrKeyContested           the same: the copy meets it in the primary key
//	key purged after the look        Duplicate                 it was one when it was looked at
//	record delivered again           Duplicate by redelivery   no effect; only a rewind brings it about, as the
//	                                                             compare of the offset refuses the rest
//	key used for another payload     Conflict                  the caller decides; it is never dropped in silence
//	key purged while it is asked     ErrKeyVanished            roll back and try again: it says neither
//	record time out of all range     nothing                   the time is left out: an advance never fails by it
//
// # What each layer may rely on
//
// The user's tables: an effect and the key that guards it are committed together
// or not at all.
//
// A sink: it is given what is fresh, in the order of the offsets, and no other
// transaction handles the partition meanwhile. It may be run again on the same
// batch.
//
// The engine: where [Ledger.Claim] or a committed advance says a partition stands
// is where to fetch from, and what lies before has been handled. Until COMMIT has
// answered, the old claim is the true one.
//
// Nobody may rely on the owner, on updated_at, or on an epoch being free of gaps.
// They are for people.
//
// # What is not used
//
// So that a distributed database which speaks PostgreSQL can carry the protocol,
// it needs rows, row locks and a primary key: no advisory lock (of a session, and
// lost by a pooler), no order of a sequence's numbers (they do not commit in
// order), no temporary table, no savepoint, no LISTEN, no transaction id. Every
// statement of a batch names the partition or the key. [Ledger.Holder] and
// [Ledger.Terminate] do read PostgreSQL's catalogs; they are not needed for
// safety, and where they find nothing the timeouts remain.
//
// Read committed is needed, not merely enough: a claim must see what it has
// waited for. Under a stricter level the same cases end in SQLSTATE 40001.
//
// # Invariants that are not obvious, and the failure behind each
//
//   - A claim is one statement. One that reads the position first begins behind
//     its predecessor's last batch, and does it twice but for the keys.
//   - The row count of an advance is looked at before anything else is done. Else
//     a zombie, whose update has matched nothing, goes on to write its effects.
//   - An advance compares the offset as well as the epoch. After a failover two
//     workers can hold one epoch, and the slower one would overwrite the offset.
//   - The epoch is compared as well as the offset. After a rewind the old owner
//     meets its offset a second time, and would pass it unasked.
//   - A change by a person raises the epoch. Else a worker that still holds records
//     of the topic before an adopt finds epoch and offset as it expects them, and
//     passes its records as those of the new topic.
//   - What an advance compares comes from the caller's claim, never from a select
//     in the same transaction. "From wherever the row stands" is no fence.
//   - A claim moves in memory only when COMMIT has answered. Else a worker goes on
//     behind a batch that was rolled back, and the batch is lost.
//   - An error of COMMIT is no abort, and no commit. Taken for an abort, a batch
//     that was applied is set aside as one that failed.
//   - What a look has not found is not fresh before the copy has answered, with as
//     many rows as were sent. The look does not see what another partition writes.
//   - A copy that was refused is not repaired but done again from the advance on:
//     the transaction is over, and taken for new its keys would have two effects.
//   - Inserted + found = sent. A key that is purged between the two statements is
//     neither, and its effect would be left out in silence.
//   - The scope of a key is the handler. Kept by partition, a producer's retry has
//     a second effect as soon as partitions are added.
//   - The payload is compared before the position. The topics of one handler share
//     their keys, and the same position of another topic is no redelivery.
//   - The insert that is sent along with an advance asks for it, and the copy is
//     sent when it has answered. Else a worker that is fenced, and then stops, holds
//     the keys of the new owner's records.
//   - Rows are locked in the order of partitions and keys in the order of keys, and
//     no transaction that holds a key waits for a row; a release waits for nobody.
//     Else two transactions deadlock, and the one that is ended is a claim.
//   - A record's time is no reason to fail. A producer that counts in microseconds
//     would stop its partition at the advance, where no message can be isolated.
package offsets
