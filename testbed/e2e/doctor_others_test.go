// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import (
	"os/exec"
	"testing"
)

func asOtherUser(*testing.T, string) *exec.Cmd { return nil }
