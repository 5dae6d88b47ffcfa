package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a piece of work is: a bar on a terminal, else a line
// now and then. It is used by one goroutine at a time.
type progress struct {
	out   io.Writer
	what  string
	total int64
	bar   *progressbar.ProgressBar // nil where no person watches

	began, told time.Time
	done        int64
}

// plainEvery is how often a plain progress is told, so that a log stays short.
const plainEvery = 2 * time.Second

func (a *app) newProgress(what string, total int64) *progress {
	now := time.Now()
	p := &progress{out: a.stderr, what: what, total: total, began: now, told: now}
	if a.onTerminal {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
	}
	return p
}

// set tells that done of the total are done.
func (p *progress) set(done int64) {
	p.done = done
	switch {
	case p.bar != nil:
		// The bar answers with an error where it was overrun; it is only a bar.
		_ = p.bar.Set64(min(done, p.total))
	case time.Since(p.told) >= plainEvery:
		p.told = time.Now()
		p.line()
	}
}

// finish leaves one line of what was done.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	p.line()
}

func (p *progress) line() {
	seconds := time.Since(p.began).Seconds()
	rate := int64(float64(p.done) / max(seconds, 0.001))
	fmt.Fprintf(p.out, "%s: %s of %s in %.1f s (%s records/s)\n", p.what, thousands(p.done), thousands(p.total), seconds, thousands(rate))
}
