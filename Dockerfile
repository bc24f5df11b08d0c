# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

# The image of otelcol-gpu: both commands and the shipped configurations, no
# shell, not root. `make image` builds it; testbed/image checks this file. With
# FLAVOUR=nvml it has the helper of the nvml receiver too, and glibc, which that needs:
# target nvml, the stage before the last.
#
# The compiler runs on the builder's own platform and builds for the one that is
# asked for: no emulation for arm64. A newer Go: --build-arg GO_VERSION=1.26.8

ARG GO_VERSION=1.26
ARG VERSION=0.1.0

FROM --platform=$BUILDPLATFORM docker.io/library/golang:${GO_VERSION}-alpine AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
WORKDIR /src
COPY . .
# The commands are those of `make build`.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    mkdir -p /out/bin /out/nvml /out/state && \
    export CGO_ENABLED=0 GOOS="$TARGETOS" GOARCH="$TARGETARCH" GOFLAGS=-buildvcs=false && \
    (cd cmd/otelcol-gpu && go build -trimpath -tags remove_all_sd,enable_kubernetes_sd,enable_dns_sd -ldflags '-s -w' -o /out/bin/otelcol-gpu .) && \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/bin/gpuctl ./cmd/gpuctl && \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/nvml/otelcol-gpu-nvml ./cmd/otelcol-gpu-nvml && \
    unset GOOS GOARCH && \
    go run ./internal/sbom/thirdparty -page extension/gpuconsoleextension/web/dist/third-party-licenses.md -out /out/third-party /out/bin/otelcol-gpu /out/bin/gpuctl /out/nvml/otelcol-gpu-nvml

# glibc besides what the last stage is made of: the helper loads the driver's library,
# which the container toolkit mounts for these two variables.
FROM gcr.io/distroless/base-debian12:nonroot AS nvml
ARG VERSION
ARG REVISION=unknown
LABEL org.opencontainers.image.title="otelcol-gpu" \
      org.opencontainers.image.description="OpenTelemetry Collector distribution for GPU fleets on Kubernetes, with the helper that asks NVIDIA's driver" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The otelcol-gpu Authors" \
      org.opencontainers.image.source="https://github.com/otelcol-gpu/otelcol-gpu" \
      org.opencontainers.image.documentation="https://github.com/otelcol-gpu/otelcol-gpu/tree/main/docs" \
      org.opencontainers.image.base.name="gcr.io/distroless/base-debian12:nonroot"
COPY LICENSE /licenses/otelcol-gpu/LICENSE
COPY --from=build /out/third-party/ /licenses/third-party/
COPY --from=build /out/bin/ /out/nvml/ /usr/local/bin/
COPY config/*.yaml /etc/otelcol-gpu/
COPY --from=build --chown=65532:65532 /out/state /var/lib/otelcol-gpu
ENV STATE_DIRECTORY=/var/lib/otelcol-gpu \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/otelcol-gpu"]
CMD ["--config", "/etc/otelcol-gpu/standalone.yaml", "--config", "/etc/otelcol-gpu/nvml-standalone.yaml"]

# Certificates of public authorities, /etc/passwd with nonroot (65532), time
# zones, and nothing that can be executed.
FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION
ARG REVISION=unknown
LABEL org.opencontainers.image.title="otelcol-gpu" \
      org.opencontainers.image.description="OpenTelemetry Collector distribution for GPU fleets on Kubernetes" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The otelcol-gpu Authors" \
      org.opencontainers.image.source="https://github.com/otelcol-gpu/otelcol-gpu" \
      org.opencontainers.image.documentation="https://github.com/otelcol-gpu/otelcol-gpu/tree/main/docs" \
      org.opencontainers.image.base.name="gcr.io/distroless/static-debian12:nonroot"
COPY LICENSE /licenses/otelcol-gpu/LICENSE
COPY --from=build /out/third-party/ /licenses/third-party/
COPY --from=build /out/bin/ /usr/local/bin/
COPY config/*.yaml /etc/otelcol-gpu/
# A new named volume that is mounted here gets this owner.
COPY --from=build --chown=65532:65532 /out/state /var/lib/otelcol-gpu
ENV STATE_DIRECTORY=/var/lib/otelcol-gpu
# Numbers, so that Kubernetes can see that it is not root. The agent's pod sets 0:
# the kubelet's socket belongs to root.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/otelcol-gpu"]
CMD ["--config", "/etc/otelcol-gpu/standalone.yaml"]
