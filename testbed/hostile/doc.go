// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostile plays attacks against the built binaries with the shipped
// configurations: an application that speaks for GPUs, one that floods the
// gateway, a web page, a person who rewrites the audit log. Each attack has a
// control, which shows that it reached what it aims at: without that it counts
// as not played, which is a failure too. `make test-hostile` runs it; its last
// line is `attacks N, succeeded N`.
package hostile
