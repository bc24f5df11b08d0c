// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
)

// The same contract is run against a Prometheus server by testbed/store.

func TestEmbeddedEngineKeepsTheContract(t *testing.T) {
	s := begin(t, configured(t, nil))
	storetest.Run(t, storetest.Subject{Store: s, Write: s.write})
	assert.Zero(t, s.logs.FilterLevelExact(2).Len(), "no errors in the log")
	assert.Positive(t, s.counted(t, "otelcol_extension_gpu_store_queries", "outcome", "ok"))
	assert.Positive(t, s.counted(t, "otelcol_extension_gpu_store_queries", "outcome", "bad_data"))
	assert.Positive(t, s.counted(t, "otelcol_extension_gpu_store_queries", "outcome", "execution"))
}

// The engine prometheus asks the API that the engine embedded serves: each is
// tested by the other.
func TestEngineForServersKeepsTheContractOnOurOwnAPI(t *testing.T) {
	written := begin(t, configured(t, nil))
	asked := begin(t, configured(t, func(c *Config) {
		c.Engine = enginePrometheus
		c.Prometheus.URL = written.url()
	}))
	storetest.Run(t, storetest.Subject{Store: asked, Write: written.write})
}

func sumOf(t *testing.T, m metricdata.Metrics, key, value string) int64 {
	t.Helper()
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(t, ok)
	total := int64(0)
	for _, p := range sum.DataPoints {
		if v, found := p.Attributes.Value(attribute.Key(key)); key == "" || found && v.AsString() == value {
			total += p.Value
		}
	}
	return total
}
