// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/otlpseeds"
)

// FuzzOTLP writes any request, as a client may write it on the wire, into a store.
func FuzzOTLP(f *testing.F) {
	for logs, seeds := range [][][]byte{otlpseeds.Metrics(time.Now()), otlpseeds.Logs(time.Now())} {
		for _, data := range seeds {
			f.Add(logs == 1, data)
		}
	}
	f.Fuzz(func(t *testing.T, logs bool, data []byte) {
		if logs {
			if ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data); err == nil {
				e, _, _ := startLogs(t, &fakeStore{})
				_ = e.ConsumeLogs(t.Context(), ld) // refusing is its right
			}
			return
		}
		md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(data)
		if err != nil {
			return
		}
		s := &fakeStore{}
		e, _, finish := startMetrics(t, s)
		_ = e.ConsumeMetrics(t.Context(), md)
		finish()
		for _, series := range s.series {
			require.False(t, series.Labels.IsEmpty())
			_, twice := series.Labels.HasDuplicateLabelNames()
			require.False(t, twice, series.Labels)
		}
	})
}
