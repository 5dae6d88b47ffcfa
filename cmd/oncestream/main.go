// Command oncestream runs a pipeline from a Kafka topic into PostgreSQL, each
// effect exactly once, and is the tool to look at one, to prove one and to try
// one out. The README describes it; `oncestream help` does so in short.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}
