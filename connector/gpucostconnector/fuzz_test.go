// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
)

// Whatever arrives: there is no more time than has passed on the boards that there may be, a
// store accepts the rows of hours, and the state can be restored.
func FuzzConsumeMetrics(f *testing.F) {
	now := time.Unix(1e9, 0)
	marshal := func(md pmetric.Metrics) []byte {
		text, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(f, err)
		return text
	}
	f.Add(marshal(snapshot(now, chat, idle)), marshal(snapshot(now.Add(time.Minute), chat)), uint16(60))
	f.Add(marshal(snapshot(now.Add(-time.Hour), chat)), marshal(snapshot(now, idle, chat)), uint16(5000))
	for _, odd := range otlpseeds.Metrics(now) {
		f.Add(odd, marshal(snapshot(now.Add(time.Minute), chat, idle)), uint16(60))
	}
	f.Fuzz(func(t *testing.T, a, b []byte, seconds uint16) {
		cfg := createDefaultConfig().(*Config)
		cfg.MaxDevices, cfg.MaxRows = 5, 5
		priced(cfg)
		c, err := newConnector(cfg, connectortest.NewNopSettings(metadata.Type))
		require.NoError(t, err)
		at := now
		require.NoError(t, c.open(t.Context(), nil, at.Add(-2*time.Hour)))
		for _, text := range [][]byte{a, b, a, b} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(text)
			if err != nil {
				return
			}
			c.intake.Read(md, at)
			at = at.Add(time.Duration(seconds) * time.Second)
			books := c.settle(at)
			sum := int64(0)
			for _, total := range books.Totals {
				sum += total.Time
			}
			require.LessOrEqual(t, sum, 5*at.Sub(now.Add(-25*time.Hour)).Milliseconds())
			for i := range books.rows {
				require.NoError(t, books.rows[i].Validate())
			}
			accounting, err := c.accounting()
			require.NoError(t, err)
			_, err = ledger.Restore(accounting, c.ledger.Encode())
			require.NoError(t, err)
			c.written.Write(&books.Books, 1, false)
		}
	})
}
