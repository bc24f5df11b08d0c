// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package gpucostconnector

import "io/fs"

// notPrivate is nothing: here modes are not what decides on who may read a file.
func notPrivate(fs.FileInfo) fs.FileMode { return 0 }
