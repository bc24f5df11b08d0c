// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// forgeries are metrics of every type with names and units that lead to families of GPUs,
// of recorded rules, of the Collector and of Prometheus.
func forgeries() pmetric.Metrics {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	for _, family := range []string{
		"hw.gpu.utilization", "gpu.exporter.up", "gpu.xid.errors", "gpu.service.partial", "dcgm.x", "DCGM_FI_DEV_GPU_UTIL",
		"device:gpu_xid_errors:max", "otelcol.process.uptime", "target_info", "up", "scrape.duration", "ALERTS", "honest",
	} {
		head, tail, _ := strings.Cut(family, ".")
		for _, name := range [][2]string{
			{family, ""}, {"_" + family, "1"}, {"." + family, "s"}, {"é" + family, "By"}, {"total." + family, "{error}"}, {"ratio " + family, "1"},
			{"-" + head, strings.ReplaceAll(tail, ".", "_")}, {"", strings.ReplaceAll(family, ".", "_")},
		} {
			for kind := range 6 {
				m := metrics.AppendEmpty()
				m.SetName(name[0])
				m.SetUnit(name[1])
				switch kind {
				case 0:
					m.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(now)
				case 1, 2:
					sum := m.SetEmptySum()
					sum.SetIsMonotonic(kind == 2)
					sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					sum.DataPoints().AppendEmpty().SetTimestamp(now)
				case 3:
					h := m.SetEmptyHistogram()
					h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					p := h.DataPoints().AppendEmpty()
					p.SetTimestamp(now)
					p.ExplicitBounds().FromRaw([]float64{1})
					p.BucketCounts().FromRaw([]uint64{0, 0})
				case 4:
					h := m.SetEmptyExponentialHistogram()
					h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					h.DataPoints().AppendEmpty().SetTimestamp(now)
				case 5:
					m.SetEmptySummary().DataPoints().AppendEmpty().SetTimestamp(now)
				}
			}
		}
	}
	return md
}

// ofOthers are the families that are not for applications.
var ofOthers = regexp.MustCompile(`^(gpu|hw|dcgm|DCGM|amd|habanalabs|xpum|otelcol|scrape|ALERTS|target_info)(_|$)|^up$|:`)

// Whatever name, type and unit an application gives, its page has no family of
// others, the page of GPUs has nothing of it, and a type of its own takes none away.
func TestNoApplicationReachesAFamilyOfGPUs(t *testing.T) {
	t.Parallel()
	_, _, endpoints := fleet(t, gpusim.Demo(gpusim.DemoTimes()))
	// The exporter is found after the applications were first: nothing is taken yet.
	c := start(t, m{"receivers": m{"dcgm": m{"endpoints": endpoints, "collection_interval": "5s"}}}, nil, config("standalone.yaml"))
	body, err := pmetricotlp.NewExportRequestFromMetrics(forgeries()).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post(fmt.Sprintf("http://%s:%d/v1/metrics", collector.Loopback, c.Ports.OTLPHTTP), "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)

	var apps map[string]*dto.MetricFamily
	require.Eventually(t, func() bool {
		apps, err = collector.Scrape(t.Context(), fmt.Sprintf("http://%s:%d/metrics", collector.Loopback, c.Ports.Apps))
		return err == nil && apps["honest"] != nil
	}, patience, 200*time.Millisecond)
	for name := range apps {
		assert.NotRegexp(t, ofOthers, name)
	}
	gpus := eventually(t, c, "the fleet", func(f map[string]*dto.MetricFamily) bool { return len(find(f["gpu_exporter_up"])) == 4 })
	assert.Equal(t, dto.MetricType_GAUGE, gpus["gpu_exporter_up"].GetType())
	for name := range gpus {
		assert.Regexp(t, ofOthers, name, "it is of an application")
	}
	for _, f := range gpus {
		for _, metric := range f.GetMetric() {
			assert.NotEmpty(t, metric.GetLabel(), "a forged series has no label: %s", f.GetName())
		}
	}
	own, err := c.OwnMetrics(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, find(own["otelcol_app_guard_dropped_points"], "reason", "reserved"))
}
