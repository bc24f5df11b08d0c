// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreexporter

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The shipped configurations keep the same attributes before Prometheus' labels.
// What an engine's page becomes (config/inference*.yaml) is cut down where it is scraped.
func TestLabelsAreThoseOfTheShippedConfigurations(t *testing.T) {
	files, err := filepath.Glob("../../config/*.yaml")
	require.NoError(t, err)
	kept := regexp.MustCompile(`keep_keys\(resource\.attributes, \[(.*)\]\)`)
	checked := 0
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(f), "inference") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, found := range kept.FindAllStringSubmatch(string(text), -1) {
			checked++
			var listed []string
			for _, quoted := range strings.Split(found[1], ", ") {
				listed = append(listed, strings.Trim(quoted, `"`))
			}
			assert.Equal(t, slices.Sorted(slices.Values(resourceLabels)), slices.Sorted(slices.Values(listed)), f)
		}
	}
	assert.GreaterOrEqual(t, checked, 2)
}

// The namespace of a service is a label on Slurm, where it is the account. What else sends one
// has the labels that it had.
func TestNamespaceOfAService(t *testing.T) {
	for cluster, want := range map[string][]string{
		"":    {},
		"hpc": {names.ServiceNamespace, names.SlurmClusterName, names.SlurmJobID},
	} {
		rm := pmetric.NewResourceMetrics()
		attributes := rm.Resource().Attributes()
		attributes.PutStr(names.ServiceNamespace, "physics")
		if cluster != "" {
			attributes.PutStr(names.SlurmClusterName, cluster)
			attributes.PutStr(names.SlurmJobID, "4711")
			attributes.PutStr(names.SlurmArrayJobID, "4700")
		}
		prepareResource(rm)
		got := []string{}
		for key := range attributes.All() {
			got = append(got, key)
		}
		assert.ElementsMatch(t, want, got)
	}
}

// The end of a histogram as the prometheus receiver writes it: with its bounds, without a sum.
func TestEndOfAScrapedHistogram(t *testing.T) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("latency")
	h := m.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range 2 {
		p := h.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(i) * time.Minute)))
		p.ExplicitBounds().FromRaw([]float64{0.1, 1})
		if i == 0 {
			p.SetSum(5)
			p.SetCount(3)
			p.BucketCounts().FromRaw([]uint64{1, 1, 1})
			continue
		}
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		p.BucketCounts().FromRaw([]uint64{0, 0, 0})
	}
	var s fakeStore
	e, _, finish := startMetrics(t, &s)
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	finish()
	all := s.byLabels()
	assert.Len(t, all, 5)
	for labels, samples := range all {
		assert.True(t, value.IsStaleNaN(samples[len(samples)-1].Value), labels)
	}
}

func TestNamesAndLabels(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for key, v := range map[string]string{
		names.HwID: "GPU-1", names.K8sPodName: "llama-0", names.K8sNodeName: "node-a", names.HostName: "exporter-x7", names.ServiceName: "llama",
		"service.instance.id": "i", "service.namespace": "n", names.K8sPodUID: "0-1", "process.pid": "7",
	} {
		rm.Resource().Attributes().PutStr(key, v)
	}
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("scope")
	gauge := func(name, unit string) pmetric.NumberDataPoint {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		return p
	}
	gauge("hw.gpu.utilization", "1").SetDoubleValue(0.5)
	gauge("hw.gpu.memory.usage", "By").SetIntValue(85899345920)
	gauge("hw.temperature", "Cel").SetIntValue(0)
	gauge("ended", "").SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	m := sm.Metrics().AppendEmpty()
	m.SetName("hw.energy")
	m.SetUnit("J")
	m.SetDescription("Energy.")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	// Points of one series in one batch, the newer one first.
	for _, ago := range []time.Duration{0, time.Minute} {
		p := sum.DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(-ago)))
		p.SetDoubleValue(100 - ago.Seconds())
		p.Attributes().PutStr("error.type", "")
		p.Attributes().PutStr("2.ä", "<b>\"x\"")
	}

	s := &fakeStore{}
	e, tel, finish := startMetrics(t, s)
	assert.True(t, e.Capabilities().MutatesData)
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	finish()

	common := []string{"hw_id", "GPU-1", "k8s_node_name", "node-a", "k8s_pod_name", "llama-0", "service_name", "llama", "__name__"}
	of := func(name string, more ...string) string {
		return series(append(append(slices.Clone(common), name), more...)...)
	}
	got := s.byLabels()
	now := at.UnixMilli()
	ended := of("ended")
	require.Len(t, got[ended], 1)
	assert.Equal(t, uint64(value.StaleNaN), math.Float64bits(got[ended][0].Value), "no recorded value is a stale marker")
	delete(got, ended)
	assert.Equal(t, map[string][]store.Sample{
		of("hw_gpu_utilization_ratio"):                   {{Time: now, Value: 0.5}},
		of("hw_gpu_memory_usage_bytes"):                  {{Time: now, Value: 85899345920}},
		of("hw_temperature_celsius"):                     {{Time: now, Value: 0}},
		of("hw_energy_joules_total", "key_2_", `<b>"x"`): {{Time: now - 60_000, Value: 40}, {Time: now, Value: 100}},
	}, got, "sorted by time, target_info, job, instance and scope are not there")
	assert.Equal(t, store.Metadata{Type: "counter", Unit: "joules", Help: "Energy."}, s.families["hw_energy_joules_total"])
	_, err := tel.GetMetric("otelcol_exporter_gpu_store_translation_failures")
	assert.Error(t, err, "nothing failed")
}

// Behind the transform of the shipped configurations nothing is left to change.
func TestPreparedDataStaysAsItIs(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.HwID, "GPU-1")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes().PutStr(names.ServiceName, "llama")
	before := pmetric.NewMetrics()
	md.CopyTo(before)
	prepareResource(rm)
	assert.Equal(t, before, md)
}

func TestEveryTypeIsStored(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.ServiceName, "llama")
	sm := rm.ScopeMetrics().AppendEmpty()
	named := func(name string) pmetric.Metric {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		return m
	}
	h := named("h").SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	hp := h.DataPoints().AppendEmpty()
	hp.ExplicitBounds().FromRaw([]float64{1})
	hp.BucketCounts().FromRaw([]uint64{2, 3})
	hp.SetCount(5)
	hp.SetSum(9)
	x := named("x").SetEmptyExponentialHistogram()
	x.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	xp := x.DataPoints().AppendEmpty()
	xp.SetCount(2)
	xp.Positive().BucketCounts().FromRaw([]uint64{1, 1})
	q := named("q").SetEmptySummary().DataPoints().AppendEmpty()
	q.SetCount(1)
	quantile := q.QuantileValues().AppendEmpty()
	quantile.SetQuantile(0.5)
	quantile.SetValue(7)
	// What Prometheus has no form for costs its neighbours nothing.
	delta := named("d").SetEmptySum()
	delta.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	delta.DataPoints().AppendEmpty()
	named("nothing")

	s := &fakeStore{}
	e, tel, finish := startMetrics(t, s)
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	finish()

	var found []string
	histograms := 0
	for _, one := range s.series {
		found = append(found, one.Labels.String())
		histograms += len(one.Histograms)
		assert.Equal(t, "llama", one.Labels.Get("service_name"))
	}
	assert.ElementsMatch(t, []string{
		series("__name__", "h_bucket", "le", "1", "service_name", "llama"),
		series("__name__", "h_bucket", "le", "+Inf", "service_name", "llama"),
		series("__name__", "h_count", "service_name", "llama"),
		series("__name__", "h_sum", "service_name", "llama"),
		series("__name__", "x", "service_name", "llama"),
		series("__name__", "q", "quantile", "0.5", "service_name", "llama"),
		series("__name__", "q_count", "service_name", "llama"),
		series("__name__", "q_sum", "service_name", "llama"),
	}, found)
	assert.Equal(t, 1, histograms)
	assert.EqualValues(t, 2, counted(t, tel, "otelcol_exporter_gpu_store_translation_failures"))
}

func TestStartNeedsAStoreThatTakesSamples(t *testing.T) {
	other := component.MustNewIDWithName("gpu_store", "other")
	for name, tc := range map[string]struct {
		host    host
		reports []string
	}{
		"none":      {host{other: &fakeStore{}}, []string{"store:", `"gpu_store"`, "service::extensions"}},
		"no store":  {host{store.DefaultID: componenttest.NewNopHost().GetExtensions()[other]}, []string{"store:", "is no gpu_store"}},
		"read only": {host{store.DefaultID: &fakeStore{readOnly: true}}, []string{"store:", "prometheus_remote_write"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, _ := settings(t)
			e, err := createMetrics(t.Context(), set, createDefaultConfig())
			require.NoError(t, err)
			err = e.Start(t.Context(), tc.host)
			require.Error(t, err)
			for _, text := range tc.reports {
				assert.ErrorContains(t, err, text)
			}
			require.NoError(t, e.Shutdown(t.Context()))
		})
	}
}

// A store that fails is the store's affair: the sender gets no error and
// does not send to all exporters again.
func TestAFailingStoreFailsNoOneElse(t *testing.T) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	m.SetEmptyGauge().DataPoints().AppendEmpty()
	s := &fakeStore{fail: store.Errorf(store.Internal, "disk full")}
	e, tel, finish := startMetrics(t, s)
	require.NoError(t, e.ConsumeMetrics(t.Context(), md))
	finish()
	assert.Len(t, s.series, 1)
	assert.EqualValues(t, 1, counted(t, tel, "otelcol_exporter_send_failed_metric_points"))
}
