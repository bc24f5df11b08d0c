// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import "github.com/otelcol-gpu/otelcol-gpu/internal/devicemap/devicemaptest"

var vendor = &devicemaptest.Acme
