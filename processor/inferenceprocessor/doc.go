// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/familiesdoc families.md ../../internal/queries/generated_inference.go

// Package inferenceprocessor turns the metrics of every inference engine into one
// vocabulary: the names, units, kinds and attributes of gen_ai.server.* where
// OpenTelemetry defines them, and of inference.server.* and inference.gateway.*.
package inferenceprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"
