// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package jobmap

import "io/fs"

const openFlags = 0

func statOf(fs.FileInfo) (uid uint32, inode uint64, ok bool) { return 0, 0, false }
