// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
)

// FuzzOTLP reads any request of logs, as a client may write it on the wire, and
// writes what it has in every format.
func FuzzOTLP(f *testing.F) {
	for _, data := range otlpseeds.Logs(now) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data)
		if err != nil {
			t.Skip("no OTLP: another package's parser refuses it")
		}
		ld.MarkReadOnly()
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					e := &event.Event{Event: eventrecord.Read(record, rl.Resource(), now)}
					for format, enc := range testEncoders {
						out, err := enc.Encode([]*event.Event{e})
						if err != nil || !json.Valid(out) {
							t.Fatalf("%s: %v: %q", format, err, out)
						}
					}
				}
			}
		}
	})
}
