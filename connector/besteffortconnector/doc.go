// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate mdatagen metadata.yaml

// Package besteffortconnector stands between what must go on and what is
// optional: what is behind it neither holds nor fails what is in front of it.
package besteffortconnector // import "github.com/otelcol-gpu/otelcol-gpu/connector/besteffortconnector"
