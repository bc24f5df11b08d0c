// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// A request reads back as that node's, of that time, with nothing of the template
// left in it.
func TestRequest(t *testing.T) {
	for _, test := range []struct {
		everything bool
		ofDevice   int
	}{{false, 10}, {true, 60}} {
		template, err := New(test.everything)
		require.NoError(t, err)
		assert.Equal(t, Devices*test.ofDevice+1, template.Points)
		at := time.Unix(1_800_000_000, 5)
		var buf []byte
		for _, node := range []int{7, MaxNodes} {
			buf = template.Request(buf, node, at)
			request := pmetricotlp.NewExportRequest()
			require.NoError(t, request.UnmarshalProto(buf))
			md := request.Metrics()
			assert.Equal(t, template.Points, md.DataPointCount())
			ids := map[string]bool{}
			for _, rm := range md.ResourceMetrics().All() {
				for _, v := range rm.Resource().Attributes().All() {
					assert.NotContains(t, v.AsString(), "~")
				}
				name, _ := rm.Resource().Attributes().Get(names.K8sNodeName)
				assert.Equal(t, map[int]string{7: "node-00007", MaxNodes: "node-99999"}[node], name.Str())
				if id, ok := rm.Resource().Attributes().Get(names.HwID); ok {
					ids[id.Str()] = true
					assert.Len(t, id.Str(), len("GPU-6f3c1a52-0000-4000-8000-000000000000"))
				}
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					var dps pmetric.NumberDataPointSlice
					if m.Type() == pmetric.MetricTypeSum {
						dps = m.Sum().DataPoints()
					} else {
						dps = m.Gauge().DataPoints()
					}
					for _, dp := range dps.All() {
						assert.Equal(t, at.UTC(), dp.Timestamp().AsTime())
						if id, ok := dp.Attributes().Get(names.HwID); ok {
							assert.False(t, strings.Contains(id.Str(), "~"))
						}
					}
				}
			}
			assert.Len(t, ids, Devices)
		}
	}
}
