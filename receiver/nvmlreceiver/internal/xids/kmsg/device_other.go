// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kmsg

import "io/fs"

func otherDevice(fs.FileInfo) bool { return false }
