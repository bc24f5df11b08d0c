# Targets work alone on a fresh machine that has Go, git and make.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# How everything is compiled: scripts/env has the flags, and their reasons.
TAGS := $(shell . scripts/env && echo "$$TAGS")
GOFLAGS := $(shell . scripts/env && echo "$$GOFLAGS")
CGO_ENABLED := $(shell . scripts/env && echo "$$CGO_ENABLED")
export TAGS GOFLAGS CGO_ENABLED
GO := go
GO_BUILD := $(CURDIR)/scripts/go-build
TOOLS := .tools
BIN := bin

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.PHONY: run
run: build ## run the demo: a simulated fleet and the collector (DCGM_VERSION=4.9 of its exporters; VENDOR=amd, gaudi or intel; DCGM_EXPORTER=URL for a real exporter)
	@$(BIN)/demo $(if $(DCGM_EXPORTER),--exporter '$(DCGM_EXPORTER)') $(if $(DCGM_VERSION),--dcgm-version '$(DCGM_VERSION)') $(if $(VENDOR),--vendor '$(VENDOR)') $(DEMO_FLAGS)

# Three tiers, see CONTRIBUTING.md; what a tier needs is looked for when it is run.
.PHONY: check
check: ## while writing: formatting, words, vet and unit tests of what changed
	@scripts/requirements check
	@scripts/test check

.PHONY: test
test: ## what comes with every change: check, and end-to-end tests of the main job; 5 minutes, 15 with empty caches
	@scripts/requirements test
	@scripts/test test

.PHONY: test-full
test-full: ## everything else: page, control plane, chart, chaos, attacks, delivery, race detector, fuzz, models; 40 minutes
	@scripts/requirements full
	@scripts/test full

# The suites, one target each; what they are is in scripts/suite.
.PHONY: image-check test-unit test-race test-mixin test-e2e test-store test-console test-report test-image test-chaos test-delivery test-inference test-health test-vendors test-slurm test-nvml test-cost test-hostile test-model test-scheduling test-training test-nccl test-page test-live test-browser test-kubernetes test-chart
test-unit: tools ## unit, component and corpus tests of the components and the testbed
	@scripts/suite unit testbed rules report
test-race: tools ## unit, component and corpus tests with the race detector
	@scripts/requirements race
	@scripts/suite race
test-e2e: build tools ## end-to-end tests of the binaries with the shipped configurations
	@scripts/suite e2e
test-mixin: build tools ## dashboards, rules and alerts in Prometheus' and Alertmanager's own code
	@scripts/suite rules mixin
test-store: build tools ## the store against a Prometheus server
	@scripts/suite store
test-console: build tools ## the console over both engines of the store
	@scripts/suite console
test-page: ## the console's page: types, unit tests, build, and Chromium on made-up answers
	@scripts/requirements browser
	@scripts/suite page
test-live: build ## the console's page: Chromium on the real binaries
	@scripts/requirements browser
	@scripts/suite live
test-browser: build ## test-page and test-live
	@scripts/requirements browser
	@scripts/suite page live
test-image: build tools ## Dockerfile, compose file, units, guides, custom distribution
	@scripts/suite image
image-check: build tools ## test-image, and the collector for arm64, really compiled (minutes)
	@scripts/suite arm64
test-report: tools ## the frame of the benchmarks
	@scripts/suite report
test-model: requirements ## gpu_summary against its model (EVALUATIONS=n, default 1000000; SEED=n for other worlds)
	@scripts/suite model
test-scheduling: requirements ## gpu_scheduling against its model; last: steps N, differences N (STEPS=n, default 100000; SEED=n)
	@scripts/suite scheduling
test-training: requirements ## gpu_training against random runs, whose truth is known; last: runs N, differences N (RUNS=n, default 1000; SEED=n)
	@scripts/suite training
test-nccl: requirements ## nccl against random jobs, whose truth is known; last: runs N, found N of N, wrong N, false alarms N (RUNS=n, default 1000; SEED=n)
	@scripts/suite nccl
test-delivery: build ## events to misbehaving webhooks, the collector killed meanwhile (EVENTS=n, default 10000; RECEIVERS=n, 20; SEED=n)
	@scripts/suite delivery
test-inference: requirements ## the same requests on the pages of all inference engines; last: sets N, differences N (SETS=n, default 1000; SEED=n)
	@scripts/suite inference
test-health: build ## every reason against a board raised and cleared, end to end; last: reasons N, scripts N, wrong N
	@scripts/suite health
test-vendors: requirements ## simulated pages of AMD, Gaudi and Intel against what is true; last: pages N, differences N, wrong owners N (PAGES=n, default 10000; SEED=n)
	@scripts/suite vendors
test-slurm: build tools ## a real Slurm of one node (as root on Debian), then slurm_allocation and gpu_pod on simulated nodes; last: steps N, wrong owners N (STEPS=n, default 1000000; SEED=n)
	@scripts/suite slurm
test-nvml: build tools ## the nvml receiver and its helper on a fake driver library in which everything goes wrong; last: cases N, failed N, neighbours late N
	@scripts/requirements nvml
	@scripts/suite nvml
test-cost: build ## a day of a simulated fleet, and random histories of the accounts of gpu_cost; last: histories N, violations N (HISTORIES=n, default 10000)
	@scripts/suite cost
test-hostile: build ## attacks on the binaries with the shipped configurations; last: attacks N, succeeded N (ONLY=expression)
	@scripts/suite hostile
test-chaos: build tools ## two minutes of chaos
	@scripts/suite chaos
test-kubernetes: build tools kubernetes kubernetes-clients keda kueue ## the whole suite on a real Kubernetes control plane
	@scripts/requirements nvml
	@scripts/suite kubernetes chart
test-chart: build tools kubernetes kubernetes-clients ## the chart: both majors of Helm, the API server, the real binary, a day and a newcomer on a control plane
	@scripts/suite chart
# The suites on Kubernetes need its programs.
.PHONY: test-repeat
test-repeat: build tools $(if $(filter kubernetes chart,$(SUITE)),kubernetes kubernetes-clients keda kueue) ## run a suite many times on busy cores; last: runs N, failed M (SUITE=e2e TIMES=20)
	@scripts/repeat "$(or $(SUITE),e2e)" "$(or $(TIMES),5)"
export EVALUATIONS SEED SETS EVENTS RECEIVERS ONLY HISTORIES PAGES STEPS RUNS

.PHONY: chaos
chaos: build ## a fleet in which everything breaks, and judges that know the truth (DURATION=1h, default 10m; SEED=n; ONLY=kinds)
	@cd testbed && $(GO) build -o ../$(BIN)/ ./chaos/cmd/chaos
	@$(BIN)/chaos -duration=$(or $(DURATION),10m) -seed=$(or $(SEED),1) -only=$(ONLY)

.PHONY: cluster
cluster: kubernetes ## run a Kubernetes control plane with simulated nodes until Ctrl-C
	@cd testbed/kubernetes && $(GO) run ./cmd/cluster $(CLUSTER_FLAGS)

.PHONY: build
build: requirements ## binaries into bin/
	@mkdir -p $(BIN)
	@echo "building (the first build takes a few minutes)"
	@cd cmd/otelcol-gpu && $(GO_BUILD) -trimpath -tags $(TAGS) -ldflags '-s -w' -o ../../$(BIN)/otelcol-gpu .
	@$(GO_BUILD) -trimpath -ldflags '-s -w -X main.version='$$(sed -n 's/^  version: //p' builder-config.yaml) -o $(BIN)/gpuctl ./cmd/gpuctl
	@$(GO_BUILD) -trimpath -ldflags '-s -w -X main.version='$$(sed -n 's/^  version: //p' builder-config.yaml) -o $(BIN)/otelcol-gpu-nvml ./cmd/otelcol-gpu-nvml
	@cd testbed && $(GO_BUILD) -trimpath -o ../$(BIN)/ ./cmd/gpusim ./cmd/demo

.PHONY: image
image: ## the container image, with docker buildx or podman (IMAGE=name PLATFORMS=linux/amd64,linux/arm64 PUSH=1; FLAVOUR=nvml: with the helper that asks NVIDIA's driver)
	@scripts/image

.PHONY: sbom
sbom: build ## what is in the binaries, as CycloneDX: bin/*.cdx.json
	@$(GO) run ./internal/sbom -version "$$(sed -n 's/^  version: //p' builder-config.yaml)" -web extension/gpuconsoleextension/web $(BIN)/otelcol-gpu >$(BIN)/otelcol-gpu.cdx.json
	@for name in gpuctl otelcol-gpu-nvml; do $(GO) run ./internal/sbom -version "$$(sed -n 's/^  version: //p' builder-config.yaml)" $(BIN)/$$name >$(BIN)/$$name.cdx.json || exit 1; done

.PHONY: third-party
third-party: build ## license texts of everything that is linked in: bin/third-party
	@$(GO) run ./internal/sbom/thirdparty -page extension/gpuconsoleextension/web/dist/third-party-licenses.md -out $(BIN)/third-party $(BIN)/otelcol-gpu $(BIN)/gpuctl $(BIN)/otelcol-gpu-nvml

.PHONY: archive
archive: ## commands, configurations, licenses and bill of materials: bin/otelcol-gpu-VERSION-OS-ARCH.tar.gz (GOOS, GOARCH)
	@scripts/archive

.PHONY: release
release: vulncheck ## what is published for machines: both archives, if no vulnerability is known
	@GOOS=linux GOARCH=amd64 scripts/archive
	@GOOS=linux GOARCH=arm64 scripts/archive

.PHONY: vulncheck
vulncheck: requirements ## known vulnerabilities in the binaries (VULNDB=file:///… for a copy of the database)
	@scripts/vulncheck

# etcd, the Kubernetes control plane and KWOK; both Helms and kubectl; KEDA; Kueue.
.PHONY: kubernetes kubernetes-clients keda kueue
kubernetes: requirements
	@scripts/kubernetes-binaries
kubernetes-clients: requirements
	@scripts/kubernetes-clients
keda: requirements
	@scripts/keda-binaries
kueue: requirements
	@scripts/kueue-binaries

.PHONY: tools
tools: requirements
	@mkdir -p $(TOOLS)
	@cd tools && $(GO) build -o ../$(TOOLS)/ go.opentelemetry.io/collector/cmd/builder go.opentelemetry.io/collector/cmd/mdatagen gotest.tools/gotestsum

.PHONY: generate
generate: tools ## generated code and documentation
	PATH="$(CURDIR)/$(TOOLS):$$PATH" $(GO) generate ./...
	@# mdatagen knows the addresses of OpenTelemetry's own distributions alone.
	sed -i 's|^\[otelcol-gpu\]: *$$|[otelcol-gpu]: https://github.com/otelcol-gpu/otelcol-gpu|' */*/README.md
	cd mixin && $(GO) generate ./...
	rm -rf charts/otelcol-gpu/files && mkdir -p charts/otelcol-gpu/files/dashboards charts/otelcol-gpu/files/rules
	cp config/{agent,agent-raw,applications,inference,inference-gateways,host,gateway,gateway-applications,raw-gateway,scale-out,scale-out-gateway,standalone,vendors,nvml,scheduler}.yaml charts/otelcol-gpu/values.yaml charts/otelcol-gpu/files/
	cp mixin/dashboards/*.json charts/otelcol-gpu/files/dashboards/ && cp mixin/rules/*.yaml charts/otelcol-gpu/files/rules/
	$(TOOLS)/builder --config builder-config.yaml --skip-compilation
	for module in . tools mixin testbed testbed/kubernetes; do (cd $$module && $(GO) mod tidy) || exit 1; done
	gofmt -w cmd/otelcol-gpu

.PHONY: lint
lint: requirements ## formatting, vet, staticcheck
	@scripts/lint

.PHONY: bench
bench: build kubernetes ## measure everything beside its peers and write docs/performance.md, hours (BENCH='-only agent-15s,gateway -turns 3'; BENCH=-help)
	@cd testbed/kubernetes/bench && $(GO) run . $(BENCH)

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME (default 30s), and docs/fuzzing.md (ONLY=expression: some, the others keep their rows)
	@scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: clean
clean:
	rm -rf $(BIN) $(TOOLS) .test

.PHONY: requirements
requirements:
	@scripts/requirements
