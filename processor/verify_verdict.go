package processor

import (
	"fmt"
	"slices"
	"time"
)

// ProofName names one of the things that a verification tries.
type ProofName string

// The proofs, in the order in which they are told.
const (
	// ProofAgain: the range a second time, at the same positions and then at new
	// ones, as if the producer had sent all of it twice, changes no table and has
	// no effect.
	ProofAgain ProofName = "again"
	// ProofResume: the effects do not depend on how batches are cut, nor on a
	// connection that is cut at any step of the transaction.
	ProofResume ProofName = "resume"
	// ProofHiddenInput: the effects depend on the records alone: not on the clock,
	// on numbers of a sequence, on random numbers, or on what a run before left
	// outside of the transaction.
	ProofHiddenInput ProofName = "hidden input"
	// ProofOrder: the effects do not depend on the order of records of different
	// record keys.
	ProofOrder ProofName = "order"
	// ProofNatural is information: which tables stay as they are when all is
	// applied a second time, with no key remembered.
	ProofNatural ProofName = "natural"
)

// ProofOutcome is what came of a proof, and of a verification.
type ProofOutcome string

// The outcomes.
const (
	// Proven: it holds for what was verified.
	Proven ProofOutcome = "proven"
	// Broken: it does not hold, and the details say where.
	Broken ProofOutcome = "broken"
	// NotTried: it was not asked for.
	NotTried ProofOutcome = "not tried"
	// Told: it is information, and no demand.
	Told ProofOutcome = "information"
)

// Proof is one thing that was tried.
type Proof struct {
	Name    ProofName    `json:"name"`
	Outcome ProofOutcome `json:"outcome"`
	// Details are a few lines: what was done, or what is wrong and what to do.
	Details []string `json:"details"`
}

// TableVerdict is what is known of one table.
type TableVerdict struct {
	Table string `json:"table"`
	// Rows and Digest are those of the reference, without the columns that are
	// excluded or named as hidden input.
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"`
	// Natural says that a second application without any key would leave it as
	// it is.
	Natural bool `json:"natural"`
}

// VerifiedRange is what was verified of one partition: of the offsets [From, To)
// those records that are in the sample.
type VerifiedRange struct {
	Partition int32 `json:"partition"`
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Records   int64 `json:"records"`
}

// Verdict is what came of a verification. As JSON it is a certificate.
type Verdict struct {
	// Outcome is Proven or Broken.
	Outcome ProofOutcome `json:"outcome"`
	// Group, Handler and Topic are the pipeline's.
	Group     string `json:"group"`
	Handler   string `json:"handler"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topic_id"`
	ClusterID string `json:"cluster_id"`
	// Partitions is the range.
	Partitions []VerifiedRange `json:"partitions"`
	// Read is how many records the range holds, Records how many of them are in
	// the sample, which is the share of the keys.
	Read    int64   `json:"read"`
	Records int64   `json:"records"`
	Sample  float64 `json:"sample"`
	// Effects, Duplicates and DeadLetters is what became of them.
	Effects     int64 `json:"effects"`
	Duplicates  int64 `json:"duplicates"`
	DeadLetters int64 `json:"dead_letters"`

	Proofs []Proof        `json:"proofs"`
	Tables []TableVerdict `json:"tables"`
	Cuts   CutReport      `json:"cuts"`
	// Hidden are the columns, as "table.column", that differ from run to run.
	Hidden []string `json:"hidden_input"`
	// Excluded are the columns that were left out by name.
	Excluded []string `json:"excluded"`
	// LeftOut is what the copies of the tables lack, and why.
	LeftOut []string `json:"left_out"`
	Seed    uint64   `json:"seed"`
	// Postgres is the server's version.
	Postgres string        `json:"postgres"`
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took_ns"`
}

func newVerdict(p *Processor, o VerifyOptions, began time.Time) *Verdict {
	return &Verdict{
		Group: p.cfg.Group, Handler: p.handler, Topic: p.cfg.Kafka.Topic, Sample: o.Sample, Seed: o.Seed,
		Hidden: []string{}, Excluded: append([]string{}, o.Exclude...), LeftOut: []string{}, Began: began.UTC(),
	}
}

// Proof returns what came of a proof.
func (v Verdict) Proof(name ProofName) Proof {
	i := slices.IndexFunc(v.Proofs, func(p Proof) bool { return p.Name == name })
	if i < 0 {
		return Proof{Name: name, Outcome: NotTried}
	}
	return v.Proofs[i]
}

// conclude says the verdict, and puts the proofs in their order.
func (v *Verdict) conclude(took time.Duration) {
	v.Took, v.Outcome = took, Proven
	order := []ProofName{ProofAgain, ProofResume, ProofHiddenInput, ProofOrder, ProofNatural}
	slices.SortFunc(v.Proofs, func(a, b Proof) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
	for _, p := range v.Proofs {
		if p.Outcome == Broken {
			v.Outcome = Broken
		}
	}
}

// String is the verdict in one line.
func (v Verdict) String() string {
	word := "proven: the pipeline is idempotent and survives a crash at each step, for these records"
	if v.Outcome != Proven {
		word = "NOT IDEMPOTENT"
	}
	return fmt.Sprintf("%d records of %s, %d effects, %d cut points: %s", v.Records, v.Topic, v.Effects, v.Cuts.Points, word)
}

// settle adds a proof: it is broken if there are faults, which are told then.
func (v *Verdict) settle(name ProofName, faults, details []string) {
	p := Proof{Name: name, Outcome: Proven, Details: details}
	if len(faults) > 0 {
		p.Outcome, p.Details = Broken, faults
	}
	v.Proofs = append(v.Proofs, p)
}
