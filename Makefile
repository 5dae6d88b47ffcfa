# `make` alone lists the targets. Only Go and make are needed for run, test and
# build; the other targets say what more they want.

SHELL       := bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO          ?= go
# The packages of the test targets: make test PKG=./offsets/...
PKG         ?= ./...
BENCH       ?= .
BENCHTIME   ?= 1s
FUZZTIME    ?= 30s
# How long faults strike, and which broker they strike: kfake or kafka.
FOR         ?= 8m
SEED        ?= 1
BROKER      ?= kafka
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# A result from the test cache says nothing of the servers that a test met.
TEST        := $(GO) test -count=1 -timeout=20m

# Pinned, and in the name of the file: another version is another file.
LINT_VERSION := v2.15.0
TOOLS        := $(CURDIR)/.cache/bin
LINT         := $(TOOLS)/golangci-lint-$(LINT_VERSION)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Run the demo: a pipeline, a crash, a replay, a verdict
	$(GO) run ./cmd/oncestream demo

.PHONY: build
build: ## Build bin/oncestream, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o bin/oncestream ./cmd/oncestream

.PHONY: test
test: ## Run the tests, on a Kafka in the process and a real PostgreSQL
	$(TEST) $(PKG)

.PHONY: test/race
test/race: ## Run them under the race detector (needs a C compiler)
	$(TEST) -race $(PKG)

.PHONY: test/broker
test/broker: ## Run the tests on a real broker (Docker, or Java 17 and Maven) and through PgBouncer
	$(TEST) -tags=broker ./processor/... ./cmd/...

.PHONY: test/docker
test/docker: build ## Run compose.yaml, and the tests in containers (needs a Docker engine)
	$(TEST) -tags=docker -run=Docker -v ./processor/processortest ./cmd/oncestream

# How many records, how often each contender runs, and what else to tell the
# program: BENCH_ARGS="--parts throughput,latency,scale,idle --pprof profiles".
BENCH_RECORDS ?= 1000000
BENCH_ROUNDS  ?= 3
BENCH_ARGS    ?= --json bench.json --svg bench.svg

.PHONY: bench
bench: build bench/go ## Run the program beside its ceiling, COPY and naive Go, on a real broker (Linux): BENCH_RECORDS=1000000 BENCH_ROUNDS=3
	$(GO) run ./cmd/benchmark --binary bin/oncestream --records $(BENCH_RECORDS) --rounds $(BENCH_ROUNDS) $(BENCH_ARGS)

.PHONY: bench/go
bench/go: ## Run the benchmarks of the packages: BENCH=pattern BENCHTIME=1s
	$(GO) test -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem -timeout=60m $(PKG)

# Without its limit the making small of one input takes up to a minute, in which
# nothing is tried.
.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME=30s
	@set -euo pipefail; packages=$$($(GO) list $(PKG)); \
	for package in $$packages; do \
	  targets=$$($(GO) test -list='^Fuzz' $$package | awk '/^Fuzz/'); \
	  for target in $$targets; do \
	    echo "$$package $$target"; \
	    $(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=1s $$package; \
	  done; \
	done

.PHONY: torture
torture: build ## Let every fault strike for FOR=8m, with SEED=1, and judge; then see the judge fail
	bin/oncestream torture --broker $(BROKER) --seed $(SEED) --for $(FOR) --report .cache/torture
	$(TEST) -tags=torture -run=TestTortureSabotage -v ./cmd/oncestream

.PHONY: lint
lint: $(LINT) ## Run golangci-lint on everything
	$(LINT) config verify
	$(LINT) run ./...

$(LINT):
	mkdir -p $(TOOLS)/new
	GOBIN=$(TOOLS)/new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv $(TOOLS)/new/golangci-lint $@

.PHONY: verify
verify: lint vet arrows generate tidy ## Run every check that is no test

.PHONY: vet
vet: ## Run go vet, with the build tags of the tests
	$(GO) vet -tags=broker,docker,torture ./...

.PHONY: arrows
arrows: ## Check that imports point down
	$(TEST) -run=Arrows ./schema

.PHONY: generate
generate: ## Generate, and fail if that changed a file
	@set -euo pipefail; state() { git diff HEAD; git ls-files --others --exclude-standard -z | xargs -0 cat; }; \
	before=$$(state | cksum); \
	$(GO) generate ./...; \
	[ "$$before" = "$$(state | cksum)" ] || { git status --short; echo 'generated files were not up to date' >&2; exit 1; }

.PHONY: tidy
tidy: ## Check that go.mod lists what is used, and nothing else
	$(GO) mod tidy -diff

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .cache bench.json bench.svg
	$(GO) clean
