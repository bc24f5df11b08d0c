// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"testing"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys/configkeystest"
)

func TestConfigIsReadStrictly(t *testing.T) { configkeystest.Strict(t, createDefaultConfig) }
