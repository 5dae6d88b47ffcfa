//go:build unix

// Command benchmark measures the product on a real broker and a real PostgreSQL,
// beside what bounds it and what it replaces, all in one run: on a machine that
// others use, only the ratios of one run say something. It is no part of what
// users get; `oncestream bench` is.
//
//	benchmark --binary bin/oncestream --records 1000000 --rounds 3
//
// # What is measured
//
// The records are those of `oncestream produce --random-keys`: payments of about
// 200 bytes, a twentieth of them repeats, half of the repeats in another
// partition. Every contender is a process of its own on a database of its own,
// made from one template, with a checkpoint before it:
//
//	insert      the program, the payments pipeline with insert alone
//	constraint  the same with guard: constraint, which keeps no keys of its own
//	insert+sum  insert, and sum over 10,000 customers
//	each        the library, user code of one statement a message
//	ceiling     consume, decode and write what the program writes (advance, keys,
//	            rows) over two connections, and nothing else: no group, no error
//	            path, no handler
//	copy        COPY of the same rows from memory, two connections, the same table
//	naive       a transaction a message, a loop a partition
//	consume     consuming alone
//
// # How it is measured
//
// Time runs from the start of consumption to the last row. A contender of this
// program takes its own time, from its first poll (copy: its first row) to the
// answer to its last COMMIT. That of the product is seen from outside: from the
// moment when the ledger shows the first claim, which comes before the first
// fetch, to the one when it shows the last offset; it is looked at every 10 ms.
// A group's rebalance and a program's start are not in it.
//
// PostgreSQL's CPU is user and system time of the server and all its processes
// (/proc), Go's and the largest resident memory are those of the contender's
// process (getrusage), its start and its end included. Rates are records a second,
// repeats included; of copy they are rows, of which there are fewer.
//
// Rounds alternate: each second one goes through the contenders backwards. The
// figures are medians of the rounds, ratios those of the ratios within a round.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run measures, or is one of the contenders that it starts.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var err error
	if len(args) > 0 && programs()[args[0]] != nil {
		err = contend(ctx, args[0], args[1:], stdout)
	} else {
		err = measureAll(ctx, args, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "benchmark:", err)
		return 1
	}
	return 0
}
