package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/oncestream/oncestream/processor"
)

// certificate is the verdict with what the program knows besides.
type certificate struct {
	// Program is the version of oncestream, Pipeline the file and SHA256 its hash.
	Program  string `json:"oncestream"`
	Pipeline string `json:"pipeline"`
	SHA256   string `json:"pipeline_sha256"`
	processor.Verdict
}

func (a *app) writeVerdict(v processor.Verdict, asJSON bool, file string, text []byte) error {
	if !asJSON {
		return writeVerdictText(a.stdout, v)
	}
	sum := sha256.Sum256(text)
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(certificate{Program: buildVersion(), Pipeline: file, SHA256: hex.EncodeToString(sum[:]), Verdict: v})
}

// writeVerdictText prints the verdict for people.
func writeVerdictText(out io.Writer, v processor.Verdict) error {
	for _, p := range v.Partitions {
		fmt.Fprintf(out, "partition %d: offsets %d to %d, %d records\n", p.Partition, p.From, p.To, p.Records)
	}
	fmt.Fprintf(out, "%d records (%.4g%% of the keys of %d): %d effects, %d duplicates, %d dead letters\n\n",
		v.Records, v.Sample*100, v.Read, v.Effects, v.Duplicates, v.DeadLetters)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROOF\tOUTCOME\tDETAILS")
	for _, p := range v.Proofs {
		name, outcome := string(p.Name), string(p.Outcome)
		if p.Outcome == processor.Broken {
			outcome = "BROKEN"
		}
		for _, d := range p.Details {
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, outcome, d)
			name, outcome = "", ""
		}
	}
	fmt.Fprintln(w, "\t\t\nTABLE\tROWS\tDIGEST")
	for _, t := range v.Tables {
		fmt.Fprintf(w, "%s\t%d\t%s\n", t.Table, t.Rows, t.Digest)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, left := range v.LeftOut {
		fmt.Fprintln(out, "the copies lack:", left)
	}
	if len(v.Excluded) > 0 {
		fmt.Fprintln(out, "not compared, as asked:", strings.Join(v.Excluded, ", "))
	}
	_, err := fmt.Fprintf(out, "\n%s (%s)\n", v, v.Took.Round(100*time.Millisecond))
	return err
}
