package main

import "github.com/oncestream/oncestream/processor"

// environmentField describes the label that keeps a clone of a database apart
// from what it was cloned from.
func environmentField(e *processor.Config) field {
	return field{
		path: "environment", value: &e.Environment, noDefault: "none", env: "ONCESTREAM_ENVIRONMENT",
		doc: "What this pipeline runs in, such as `production`. The first start that names one labels the ledger; from then on a start that names another, or none, is refused (`other_environment`).",
	}
}
