// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package helper

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
