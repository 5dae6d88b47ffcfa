package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	stateHalted = "halted"
	// fileMark stands for the pipeline file in the commands that a reason names.
	fileMark = " FILE"
	// remedyMark begins the command of a halt, in the ledger's reason.
	remedyMark = "to resolve it: "
)

// named puts the file's name into the commands that a text names.
func named(text, file string) string { return strings.ReplaceAll(text, fileMark, " "+file) }

// name does so in all reasons.
func (s *status) name(file string) {
	for i := range s.Partitions {
		s.Partitions[i].Reason = named(s.Partitions[i].Reason, file)
	}
}

func (s *status) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "group %s, topic %s\n", s.Group, s.Topic)
	fmt.Fprintln(w, "PARTITION\tOWNER\tEPOCH\tNEXT\tEND\tLAG\tDRIFT\tRETENTION\tPROCESSED\tDUPLICATES\tBY PRODUCER\tBY REDELIVERY\tDEAD LETTERS\tSTATE")
	for _, p := range s.Partitions {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\n",
			p.Partition, orDash(p.Owner), p.Epoch, numberText(p.Next), p.End, p.Lag, p.driftText(), p.retentionText(), p.account())
	}
	fmt.Fprintf(w, "all\t\t\t\t\t%d\t\t\t%s\n", s.Total.Lag, s.Total.account())
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range s.Partitions {
		if p.State == stateHalted {
			fmt.Fprintf(out, "%s/%d is halted at offset %s: %s\n", s.Topic, p.Partition, numberText(p.Next), strings.Replace(p.Reason, "; "+remedyMark, "\n  "+remedyMark, 1))
		}
	}
	if o := s.Oldest; o != nil {
		age := time.Duration(o.AgeSeconds * float64(time.Second)).Truncate(time.Second)
		fmt.Fprintf(out, "the vacuum is held back for %v, with %d dead rows of positions, by %s\n", age, o.DeadRows, o.text)
	}
	return nil
}

// account is the account in columns. Of a reason it has the code; the whole of it
// stands below the table.
func (p *partitionStatus) account() string {
	state := p.State
	if code, _, _ := strings.Cut(p.Reason, ":"); code != "" {
		state += ": " + code
	}
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%s", p.Processed, p.DuplicatesProducer+p.DuplicatesRedelivery, p.DuplicatesProducer, p.DuplicatesRedelivery, p.OpenDeadLetters, state)
}

func (p *partitionStatus) driftText() string {
	if p.Drift != nil && *p.Drift > 0 {
		return "+" + numberText(p.Drift)
	}
	return numberText(p.Drift)
}

func (p *partitionStatus) retentionText() string {
	if p.forecast == nil {
		return "-"
	}
	return p.forecast.String()
}

func numberText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
