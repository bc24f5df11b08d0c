// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sysfs reads AMD's boards from the files of their driver, amdgpu, on hosts
// without an exporter. What it reads it writes as a page in the exporter's families and
// units, so that one table has what they mean; files without such a family have fields
// of their own there, which begin with sysfs_.
//
// layout.go finds the files that a board has, read.go reads them, parse.go has their
// formats, and page.go reads all boards at once, each in a goroutine of its own: the
// kernel may block a read for as long as a board does not answer.
package sysfs
