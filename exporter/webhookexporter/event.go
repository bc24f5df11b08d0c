// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
)

// event is an event on its way to endpoints. The deliveries to all of them share
// it, and never change it.
type event struct {
	eventrecord.Event
	Trigger audit.Trigger // what it is sent for, if not because it happened
}
