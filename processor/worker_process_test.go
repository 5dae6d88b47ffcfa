package processor_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/oncestream/oncestream/offsets"
	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/processor/processortest"
)

// workers are what the test binary can run as in a process of its own.
var workers = map[string]func(ctx context.Context) int{"append": appendWorker}

// appendWorker runs the pipeline of texts into the append sink, until SIGTERM.
// At the step named in the environment, the n-th time it is reached, it says
// "AT step" and waits for SIGCONT: the test kills it there, or stops it and
// lets it go on. The step "released" is reached when a partition was let go.
func appendWorker(ctx context.Context) int {
	fmt.Println("STARTED") // from here on SIGTERM is heard
	stop := waitAt(processor.Step(os.Getenv("STEP")), int64(number("NTH")))
	var wasted atomic.Int64
	cfg := processor.Config{
		Group: os.Getenv("GROUP"),
		Kafka: processor.Kafka{
			Brokers: strings.Split(os.Getenv("BROKERS"), ","), Topic: os.Getenv("TOPIC"),
			Start: processor.Start{At: "earliest"}, SessionTimeout: duration("SESSION"),
			GroupProtocol: os.Getenv("PROTOCOL"), Balancer: os.Getenv("BALANCER"), InstanceID: os.Getenv("INSTANCE"),
		},
		Postgres: processor.Postgres{
			URL: os.Getenv("URL"), Schema: os.Getenv("SCHEMA"), LockTimeout: duration("LOCK"), IdleTimeout: duration("IDLE"), TransactionTimeout: duration("TRANSACTION"),
		},
		Batch:        processor.Batch{MaxRecords: number("BATCH")},
		DrainTimeout: duration("DRAIN"),
		Retry:        processor.Retry{Initial: duration("RETRY"), Max: duration("RETRY_MAX")},
		Logger:       slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hooks: processor.Hooks{
			Step:       stop,
			Released:   func(_ string, c offsets.Claim) { stop("released", processor.BatchInfo{Partition: c.Partition}) },
			RolledBack: func(processor.BatchInfo, error) { wasted.Add(1) },
		},
	}
	p, err := processor.New(cfg, texts(appendSink{}))
	if err == nil {
		err = p.Run(ctx)
	}
	if err != nil {
		fmt.Println("FAILED", err)
		return 1
	}
	fmt.Println("WASTED", wasted.Load(), "batches")
	fmt.Println("STOPPED")
	return 0
}

func waitAt(step processor.Step, nth int64) func(processor.Step, processor.BatchInfo) {
	var reached atomic.Int64
	return func(s processor.Step, b processor.BatchInfo) {
		if s != step || reached.Add(1) != nth {
			return
		}
		resumed := make(chan os.Signal, 1)
		signal.Notify(resumed, syscall.SIGCONT)
		defer signal.Stop(resumed)
		fmt.Printf("AT %s partition %d offsets %d to %d\n", s, b.Partition, b.From, b.To)
		<-resumed
	}
}

func duration(name string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(name))
	return d
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// process starts an append worker on the world. more overrides its settings.
func (w *world) process(tb testing.TB, more ...string) *processortest.Process {
	tb.Helper()
	return processortest.StartWorker(tb, "append", append([]string{
		"BROKERS=" + strings.Join(w.Addrs(), ","), "TOPIC=" + w.topic, "GROUP=" + w.group, "URL=" + w.db.URL, "SCHEMA=" + w.db.Schema,
		"SESSION=3s", "IDLE=2s", "LOCK=1s", "TRANSACTION=20s", "DRAIN=3s", "RETRY=10ms", "RETRY_MAX=500ms", "BATCH=100",
	}, more...)...)
}
