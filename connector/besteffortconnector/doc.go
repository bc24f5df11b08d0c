// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package besteffortconnector separates pipelines that must continue from optional
// ones: the pipelines behind it neither block nor fail those in front of it.
package besteffortconnector // import "github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector"
