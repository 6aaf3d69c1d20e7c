# Blindpost. Every target installs what it needs. `make run`, `make demo` and
# `make test` need nothing but Go.

GO      ?= go
BIN     := bin/blindpost
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUNCTIONS := connect message disconnect sweeper

# The first seed of all simulations comes from the clock, so each run has new schedules. It
# is in the environment, so go test does not show a cached result.
ifndef START
START := $(shell date +%s)000
endif

.PHONY: run demo test build functions race sim chaos chaos-short test-infra test-functions test-aws try-aws test-dynamo test-module module deploy fuzz bench bench-short cost cost-keep vet lint generate clean

run: build ## start the relay, with a database file in ./blindpost-data
	$(BIN) serve

demo: build ## a relay, an agent and two phones, with over 30 checks
	$(BIN) demo

test: build functions ## build, vet, unit, conformance and simulation tests, in a few minutes
	$(GO) vet ./...
	@echo 'simulations: seeds from $(START) on, again with: make test START=$(START)'
	START=$(START) $(GO) test -timeout 9m ./...

build:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/blindpost

functions: ## the four Lambda binaries
	@for f in $(FUNCTIONS); do \
	  GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -tags lambda.norpc -trimpath -buildvcs=false \
	    -ldflags '-s -w -buildid=' -o bin/functions/$$f/bootstrap ./functions/$$f || exit 1; \
	done

race: ## the concurrent packages under the race detector
	@echo 'simulations: seeds from $(START) on, again with: make race START=$(START)'
	START=$(START) $(GO) test -race -short -timeout 25m ./shared/...

SEEDS ?= 100000
DIALECT ?= skald
sim: ## SEEDS new schedules, or those from START on, or that of SEED=n with its trace; DIALECT=skald|agentknock|aelos; Skald also with TABLE=bolt (a file) or TABLE=dynamo (a stand-in of DynamoDB)
	@echo '$(if $(SEED),seed $(SEED),seeds from $(START) on, again with: make sim START=$(START) SEEDS=$(SEEDS) DIALECT=$(DIALECT) TABLE=$(TABLE))'
	@SEED=$(SEED) SEEDS=$(SEEDS) START=$(START) TABLE=$(TABLE) \
	  $(GO) test $(if $(filter dynamo,$(TABLE)),-tags aws) ./shared/proof/$(DIALECT)/sim -run '^TestSimulation$$' -count=1 -timeout 0 -v

chaos: ## real faults on the real binary, at most five minutes
	$(GO) test ./shared/proof/chaos -run '^TestChaos$$' -count=1 -timeout 10m -v -chaos

chaos-short:
	$(GO) test ./shared/proof/chaos -run '^TestChaos$$' -count=1 -timeout 10m -v -chaos -short

test-infra: ## the AWS stack: template tests, cdk-nag, cfn-lint, sam validate, the request template in Velocity; needs Node, Python, a JDK and Maven
	./.ci/infra

test-functions: ## the conformance suites through the functions, over stand-ins of the AWS services
	$(GO) test -tags aws -count=1 -timeout 20m ./functions/...

RIE := github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d
test-aws: ## the compiled functions behind `serve --lambda`, over stand-ins of AWS: the conformance suites, faults, order, cold start; needs cargo
	./.ci/standins/dynamo install
	@test -x .tools/aws-lambda-rie || GOBIN=$(CURDIR)/.tools $(GO) install $(RIE)
	$(GO) test -tags aws -count=1 -timeout 15m -parallel 4 ./shared/proof/localaws

try-aws: build ## the functions and stand-ins of AWS on this machine, for `bin/blindpost serve --lambda http://127.0.0.1:3001`; needs cargo
	./.ci/standins/dynamo install
	$(GO) run ./.ci/standins/aws

test-dynamo: ## the storage suite and the simulation against a stand-in of DynamoDB; needs cargo
	./.ci/standins/dynamo install
	./.ci/standins/dynamo run $(GO) test -tags aws -count=1 ./shared/table/dynamo/...
	@echo 'simulation: seeds from $(START) on, again with: make test-dynamo START=$(START)'
	START=$(START) ./.ci/standins/dynamo run $(GO) test -tags aws -count=1 -timeout 20m ./shared/proof/skald/sim -run OverDynamo -v

module: ## give the module another path, in go.mod and everywhere else: make module MODULE=example.com/you/blindpost
	@./.ci/module "$(MODULE)"

test-module: build ## do that in a copy; use a client from another module, against the binary
	./.ci/module-test

deploy: ## deploy to AWS; settings in ARGS='-c blindpost:edge=true', see docs/settings.md
	npx aws-cdk@2 deploy $(ARGS)

FUZZTIME ?= 10s
fuzz: ## run each fuzz target for FUZZTIME
	./.ci/fuzz $(FUZZTIME)

bench: build ## measure the relay, which runs in a process of its own
	$(BIN) bench

bench-short: build
	$(BIN) bench --short

COUNTS := $(CURDIR)/bin/cost.json
COST_FLAGS ?=
cost: build ## what the relay costs a month on AWS: run a day, count it and price it
	@$(GO) test ./functions/internal/costrun -run '^TestCounts$$' -count=1 -args -write $(COUNTS) >&2
	$(BIN) cost --counts $(COUNTS) $(COST_FLAGS)

cost-keep: ## keep the counts of a new run as those that `blindpost cost` uses
	$(GO) test ./functions/internal/costrun -run '^TestCounts$$' -count=1 -args -write $(CURDIR)/shared/proof/cost/counts.json

vet: ## go vet with every build tag, staticcheck, dead code; installs the tools into .tools
	$(GO) vet -tags aws ./...
	$(GO) vet -tags cdk ./infra/...
	@test -x .tools/staticcheck || GOBIN=$(CURDIR)/.tools $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	.tools/staticcheck -tags aws ./...
	@test -x .tools/deadcode || GOBIN=$(CURDIR)/.tools $(GO) install golang.org/x/tools/cmd/deadcode@v0.52.0
	@# Go compiles an example without output and never runs it.
	@dead=$$(.tools/deadcode -test -tags aws ./...) || exit 1; \
	  if printf '%s\n' "$$dead" | grep -v ': unreachable func: Example_' | grep .; then exit 1; fi

lint: ## golangci-lint, installed into .tools
	@test -x .tools/golangci-lint || GOBIN=$(CURDIR)/.tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	.tools/golangci-lint run ./...
	.tools/golangci-lint run --build-tags cdk ./infra/...

.PHONY: settings
settings: ## write docs/settings.md from the declarations
	$(GO) test ./shared/settings -run '^TestPage$$' -count=1 -args -write

generate: settings ## write docs/settings.md and the protobuf code; needs protoc
	@test -x .tools/protoc-gen-go || GOBIN=$(CURDIR)/.tools $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
	PATH="$(CURDIR)/.tools:$$PATH" $(GO) generate ./shared/...

clean:
	rm -rf bin
