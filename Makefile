# Targets work alone on a fresh machine that has Go, git and make.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The build tags of builder-config.yaml.
TAGS := remove_all_sd,enable_kubernetes_sd,enable_dns_sd
# No VCS stamp: the version is the manifest's, and a build must not depend on
# how the source was fetched.
GO := GOFLAGS=-buildvcs=false go
GO_BUILD := GOFLAGS=-buildvcs=false $(CURDIR)/scripts/go-build
TOOLS := .tools
BIN := bin
export TAGS

# Go sources of the modules; the targets below are rebuilt when one changes.
# Go's own cache makes that cheap.
.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

.PHONY: run
run: check build ## run the demo: a simulated fleet and the collector (DCGM_EXPORTER=URL for a real exporter)
	@$(BIN)/demo $(if $(DCGM_EXPORTER),--exporter '$(DCGM_EXPORTER)') $(DEMO_FLAGS)

.PHONY: test
test: ## everything that CI runs
	@scripts/check test
	@scripts/test

.PHONY: test-browser
test-browser: build ## the console's page: unit tests, build, and Chromium on made-up answers and on the real binaries
	@scripts/check browser
	@scripts/browser

.PHONY: test-kubernetes
test-kubernetes: build kubernetes ## the whole suite on a real Kubernetes control plane; last: wrong, stale and unknown holders
	@mkdir -p .test && rm -f .test/day
	@scripts/kubernetes-clients
	@status=0; cd testbed/kubernetes && DAY_REPORT=$(CURDIR)/.test/day $(GO) test -count 1 -p 1 -timeout 60m ./... || status=$$?; cat $(CURDIR)/.test/day; exit $$status

.PHONY: test-chart
test-chart: build kubernetes ## the chart: both majors of Helm, the API server, the real binary, a day and a newcomer on a control plane
	@scripts/kubernetes-clients
	@cd testbed/kubernetes && $(GO) test -count 1 -timeout 30m ./runner ./chart
	@cd testbed/kubernetes && $(GO) test -count 1 ./operator

.PHONY: cluster
cluster: kubernetes ## run a Kubernetes control plane with simulated nodes until Ctrl-C
	@cd testbed/kubernetes && $(GO) run ./cmd/cluster $(CLUSTER_FLAGS)

.PHONY: test-model
test-model: check ## gpu_summary against its model (EVALUATIONS=n, default 1000000; SEED=n for other worlds)
	@$(GO) test -tags $(TAGS) -count=1 -timeout 24h -v -run '^TestModel$$' ./processor/gpusummaryprocessor/internal/model \
		-args -evaluations=$(or $(EVALUATIONS),1000000) -seed=$(or $(SEED),1) | grep -v '^\(===\|---\|PASS\|ok\)'; exit $${PIPESTATUS[0]}

.PHONY: test-mixin
test-mixin: build ## dashboards, rules and alerts in Prometheus' and Alertmanager's own code
	@cd mixin && $(GO) test ./...
	@cd testbed && $(GO) test -count 1 -timeout 20m ./mixin/...

.PHONY: test-delivery
test-delivery: build ## events to misbehaving webhooks, the collector killed meanwhile (EVENTS=n, default 10000; RECEIVERS=n, 20; SEED=n)
	@cd testbed && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN)/ ./cmd/delivery
	@$(BIN)/delivery -events=$(or $(EVENTS),10000) -receivers=$(or $(RECEIVERS),20) -seed=$(or $(SEED),1)

.PHONY: test-hostile
test-hostile: build ## attacks on the binaries with the shipped configurations; last: attacks N, succeeded N (ONLY=expression)
	@cd testbed && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN)/ ./cmd/hostile
	@$(BIN)/hostile -bin $(BIN) -config config -only '$(ONLY)'

.PHONY: chaos
chaos: build ## a fleet in which everything breaks, and judges that know the truth (DURATION=1h, default 10m; SEED=n; ONLY=kinds)
	@cd testbed && CGO_ENABLED=0 $(GO) build -trimpath -o ../$(BIN)/ ./chaos/cmd/chaos
	@$(BIN)/chaos -duration=$(or $(DURATION),10m) -seed=$(or $(SEED),1) -only=$(ONLY)

.PHONY: build
build: check ## binaries into bin/
	@mkdir -p $(BIN)
	@echo "building (the first build takes a few minutes)"
	@cd cmd/otelcol-gpu && CGO_ENABLED=0 $(GO_BUILD) -trimpath -tags $(TAGS) -ldflags '-s -w' -o ../../$(BIN)/otelcol-gpu .
	@CGO_ENABLED=0 $(GO_BUILD) -trimpath -ldflags '-s -w -X main.version='$$(sed -n 's/^  version: //p' builder-config.yaml) -o $(BIN)/gpuctl ./cmd/gpuctl
	@cd testbed && CGO_ENABLED=0 $(GO_BUILD) -trimpath -o ../$(BIN)/ ./cmd/gpusim ./cmd/demo

.PHONY: image
image: ## the container image, with docker buildx or podman (IMAGE=name PLATFORMS=linux/amd64,linux/arm64 PUSH=1)
	@scripts/image

.PHONY: image-check
image-check: build ## Dockerfile, compose file, units and guides; the collector for arm64, really compiled (minutes)
	@mkdir -p .test
	@cd cmd/otelcol-gpu && CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) build -trimpath -tags $(TAGS) -ldflags '-s -w' -o ../../.test/otelcol-gpu-arm64 .
	@cd testbed && OTELCOL_GPU_ARM64=$(CURDIR)/.test/otelcol-gpu-arm64 $(GO) test -count 1 -timeout 20m ./image

.PHONY: sbom
sbom: build ## what is in the binaries, as CycloneDX: bin/*.cdx.json
	@$(GO) run ./internal/sbom -version "$$(sed -n 's/^  version: //p' builder-config.yaml)" -web extension/gpuconsoleextension/web $(BIN)/otelcol-gpu >$(BIN)/otelcol-gpu.cdx.json
	@$(GO) run ./internal/sbom -version "$$(sed -n 's/^  version: //p' builder-config.yaml)" $(BIN)/gpuctl >$(BIN)/gpuctl.cdx.json

.PHONY: third-party
third-party: build ## license texts of everything that is linked in: bin/third-party
	@$(GO) run ./internal/sbom/thirdparty -page extension/gpuconsoleextension/web/dist/third-party-licenses.md -out $(BIN)/third-party $(BIN)/otelcol-gpu $(BIN)/gpuctl

.PHONY: archive
archive: ## commands, configurations, licenses and bill of materials: bin/otelcol-gpu-VERSION-OS-ARCH.tar.gz (GOOS, GOARCH)
	@scripts/archive

.PHONY: release
release: vulncheck ## what is published for machines: both archives, if no vulnerability is known
	@GOOS=linux GOARCH=amd64 scripts/archive
	@GOOS=linux GOARCH=arm64 scripts/archive

.PHONY: vulncheck
vulncheck: check ## known vulnerabilities in the binaries (VULNDB=file:///… for a copy of the database)
	@scripts/vulncheck

# etcd, the Kubernetes control plane and KWOK, for tests.
.PHONY: kubernetes
kubernetes: check
	@scripts/kubernetes-binaries

.PHONY: tools
tools: check
	@mkdir -p $(TOOLS)
	@cd tools && $(GO) build -o ../$(TOOLS)/ tool

.PHONY: generate
generate: tools ## generated code and documentation
	PATH="$(CURDIR)/$(TOOLS):$$PATH" $(GO) generate -tags $(TAGS) ./...
	@# mdatagen knows the addresses of OpenTelemetry's own distributions alone.
	sed -i 's|^\[otelcol-gpu\]: *$$|[otelcol-gpu]: https://github.com/otelcol-gpu/otelcol-gpu|' */*/README.md
	cd mixin && $(GO) generate ./...
	rm -rf charts/otelcol-gpu/files && mkdir -p charts/otelcol-gpu/files/dashboards charts/otelcol-gpu/files/rules
	cp config/{agent,agent-raw,applications,inference,host,gateway,gateway-applications,raw-gateway,scale-out,scale-out-gateway,standalone}.yaml charts/otelcol-gpu/files/
	cp mixin/dashboards/*.json charts/otelcol-gpu/files/dashboards/ && cp mixin/rules/*.yaml charts/otelcol-gpu/files/rules/
	$(TOOLS)/builder --config builder-config.yaml --skip-compilation
	for module in . tools mixin testbed testbed/kubernetes; do (cd $$module && $(GO) mod tidy) || exit 1; done
	gofmt -w cmd/otelcol-gpu

.PHONY: lint
lint: tools ## formatting, vet, staticcheck
	@scripts/lint

.PHONY: bench
bench: build kubernetes ## measure everything beside its peers and write docs/performance.md, hours (BENCH='-only agent-15s,gateway -turns 3'; BENCH=-help)
	@cd testbed/kubernetes/bench && $(GO) run . $(BENCH)

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME (default 30s), and docs/fuzzing.md
	@scripts/fuzz $(or $(FUZZTIME),30s)

.PHONY: clean
clean:
	rm -rf $(BIN) $(TOOLS) .test

.PHONY: check
check:
	@scripts/check
