package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/oncestream/oncestream/processor"
	"github.com/oncestream/oncestream/schema/tables"
)

// errDiffers ends a shadow replay that has found a difference; what it printed
// says which.
var errDiffers = errors.New("the live tables are not what the topic says")

// shadow rebuilds the effects beside the live tables and prints the difference.
func (a *app) shadow(ctx context.Context, c *config, f *replayFlags) error {
	targets := c.bareTables()
	p, err := a.openOnCopies(ctx, c, targets)
	if err != nil {
		return err
	}
	if !c.hasStatement() {
		f.shadow.Tables = targets
	}
	r, err := f.bounds(ctx, c.engine.Kafka)
	if err != nil {
		return err
	}
	report, err := a.shadowShown(ctx, p, r, f.shadow)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = json.NewEncoder(a.stdout).Encode(report)
	} else {
		writeShadow(a.stdout, report, f.shadow.Drop)
	}
	if err == nil && !report.Clean() {
		err = errDiffers
	}
	return err
}

// shadowShown rebuilds with a progress.
func (a *app) shadowShown(ctx context.Context, p *processor.Processor, r processor.Range, o processor.ShadowOptions) (processor.ShadowReport, error) {
	var bar *progress
	r.Progress = func(done, total int64) {
		if bar == nil {
			bar = a.newProgress("rebuilt", total)
		}
		bar.set(done)
	}
	report, err := p.Shadow(ctx, r, o)
	if bar != nil && err == nil {
		bar.finish()
	}
	return report, err
}

// writeShadow prints the difference, table by table.
func writeShadow(out io.Writer, r processor.ShadowReport, dropped bool) {
	for i := range r.Tables {
		t := &r.Tables[i]
		fmt.Fprintln(out, t.Difference)
		for _, c := range t.Columns {
			how := ""
			if c.Lenient {
				how = ", which does not count: the database fills it in by itself (--strict)"
			}
			fmt.Fprintf(out, "  column %s differs in %d rows%s\n", c.Name, c.Rows, how)
		}
		for _, e := range t.Examples {
			fmt.Fprintf(out, "  %s: %s%s\n", e.Kind, keyText(e.Key), valuesText(e))
		}
	}
	for _, l := range r.LeftOut {
		fmt.Fprintf(out, "not copied: %s: %s\n", l.What, l.Why)
	}
	if r.Advanced > 0 {
		fmt.Fprintf(out, "the group has passed %d offsets meanwhile, which were rebuilt too\n", r.Advanced)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	fmt.Fprintln(out, r)
	if !dropped {
		fmt.Fprintf(out, "what was rebuilt is in schema %s; drop it with: oncestream replay … --into %[1]s --replace --drop\n", r.Schema)
	}
}

func keyText(key []tables.ColumnValue) string {
	all := make([]string, len(key))
	for i, c := range key {
		all[i] = c.Name + "=" + cellText(c.Value)
	}
	return strings.Join(all, " ")
}

// valuesText tells the columns that differ of a pair: what it should be and what
// it is.
func valuesText(e tables.RowDifference) string {
	if e.Kind != tables.KindDifferent {
		return ""
	}
	all := make([]string, len(e.Columns))
	for i, c := range e.Columns {
		all[i] = fmt.Sprintf("%s is %s, and should be %s", c.Name, cellText(c.Right), cellText(c.Left))
	}
	return ": " + strings.Join(all, "; ")
}

func cellText(v *string) string {
	if v == nil {
		return "null"
	}
	return *v
}
