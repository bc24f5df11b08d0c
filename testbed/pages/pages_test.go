// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages compares the whole output of the dcgm receiver over simulated pages
// with what it was before: a change of the receiver's inside must not change a byte.
package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
)

var update = flag.Bool("update", false, "write testdata/dcgm.sha256: after a change of the simulator, or an intended one of the receiver")

const (
	goldenFile = "testdata/dcgm.sha256"
	interval   = 15 * time.Second
	scrapes    = 10 // of each node
	perConfig  = 25 // nodes
)

// configs are the settings that change what is written of a page.
var configs = []map[string]any{
	{"names": "otel"},
	{"names": "both", "node_name": "node-1", "cluster_name": "cluster-1"},
	{"names": "dcgm"},
	{"names": "otel", "unmapped": "drop", "exporter_interval": "15s", "frozen_after": 2,
		"scrape": map[string]any{"metric_relabel_configs": []any{
			map[string]any{"action": "drop", "source_labels": []any{"__name__"}, "regex": "DCGM_FI_DEV_(ENC|DEC)_UTIL"},
			map[string]any{"action": "labeldrop", "regex": "err_msg"},
		}}},
}

// TestSameBytes: 1,000 seeded pages give the bytes and the own metrics that they
// gave when the golden file was written. The file has a hash of the pages as well:
// where it differs, the simulator changed, and the file has to be written by a
// receiver that is known to be right.
func TestSameBytes(t *testing.T) {
	pages, output := sha256.New(), sha256.New()
	n := 0
	for i, config := range configs {
		nodes := simulate(t, uint64(i+1))
		for _, node := range nodes {
			for _, page := range node {
				pages.Write(page)
				n++
			}
		}
		for _, line := range receive(t, nodes, config) {
			output.Write([]byte(line))
		}
	}
	require.Equal(t, 1000, n)
	got := fmt.Sprintf("pages %s\noutput %s\n", hex.EncodeToString(pages.Sum(nil)), hex.EncodeToString(output.Sum(nil)))
	if *update {
		require.NoError(t, os.WriteFile(goldenFile, []byte(got), 0o644))
	}
	want, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// simulate returns the pages of some nodes of all kinds, scrape after scrape.
func simulate(t *testing.T, seed uint64) [][][]byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	cfg := gpusim.Config{Seed: seed}
	for i := range perConfig {
		node, faults := randomNode(rng, fmt.Sprintf("node-%d", i))
		cfg.Nodes, cfg.Faults = append(cfg.Nodes, node), append(cfg.Faults, faults...)
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fleet, err := gpusim.New(cfg, func() time.Time { return start })
	require.NoError(t, err)
	all := make([][][]byte, perConfig)
	for i, node := range cfg.Nodes {
		for k := range scrapes {
			page, err := fleet.Page(node.Name, start.Add(time.Duration(k)*interval))
			require.NoError(t, err)
			all[i] = append(all[i], spoil(rng, page))
		}
	}
	return all
}

var (
	versions = []string{"2.1", "2.4", "3.0", "3.3", "4.5", "4.6", "4.6"}
	layouts  = map[string][][]string{
		"A100-SXM4-40GB": {{"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}, {"7g.40gb"}},
		"H100":           {{"3g.40gb", "3g.40gb"}, {"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"}},
	}
	models = []string{"T4", "L40S", "A100-SXM4-40GB", "A100-SXM4-80GB", "H100", "H100", "B200", "GB10"}
)

// randomNode is a node of any version and board, with pods and faults.
func randomNode(rng *rand.Rand, name string) (gpusim.Node, []gpusim.Fault) {
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	node := gpusim.Node{
		Name: name, Version: pick(versions), Model: pick(models), Devices: 1 + rng.IntN(4),
		Fields: pick([]string{"all", "default"}), PodLabels: rng.IntN(2) == 0, PodUID: rng.IntN(2) == 0,
		MIG: map[string][]string{},
	}
	node.VirtualGPUs = node.Version >= "4.5" && rng.IntN(2) == 0
	add := func(device string) {
		node.Pods = append(node.Pods, gpusim.Pod{
			Namespace: pick([]string{"inference", "training"}), Name: fmt.Sprintf("pod-%d", len(node.Pods)), Container: "main",
			Labels: map[string]string{"app": "llm"}, Devices: []string{device},
			Load: []gpusim.Load{gpusim.Inference, gpusim.Training, gpusim.Idle}[rng.IntN(3)],
		})
	}
	for i := range node.Devices {
		device := strconv.Itoa(i)
		switch of := layouts[node.Model]; {
		case of != nil && rng.IntN(3) == 0:
			layout := of[rng.IntN(len(of))]
			node.MIG[device] = layout
			for k := range rng.IntN(len(layout)) {
				add(fmt.Sprintf("%d:%d", i, k))
			}
		case rng.IntN(4) == 0:
			for k := range 3 {
				add(fmt.Sprintf("%d::%d", i, k))
			}
		case rng.IntN(3) > 0:
			add(device)
		}
	}
	fault := func(kind gpusim.Kind, change func(*gpusim.Fault)) gpusim.Fault {
		f := gpusim.Fault{Node: name, Kind: kind, After: gpusim.Duration(time.Duration(1+rng.IntN(scrapes-2)) * interval), Device: strconv.Itoa(rng.IntN(node.Devices))}
		if change != nil {
			change(&f)
		}
		return f
	}
	var faults []gpusim.Fault
	for range rng.IntN(4) {
		switch rng.IntN(6) {
		case 0:
			faults = append(faults, fault(gpusim.XID, func(f *gpusim.Fault) { f.Code = []int{13, 31, 48, 79, 94}[rng.IntN(5)] }))
		case 1:
			faults = append(faults, fault(gpusim.GPULost, func(f *gpusim.Fault) { f.For = gpusim.Duration(2 * interval) }))
		case 2:
			faults = append(faults, fault(gpusim.Sentinel, func(f *gpusim.Fault) { f.For = gpusim.Duration(3 * interval) }))
		case 3:
			faults = append(faults, fault(gpusim.ThermalThrottle, func(f *gpusim.Fault) { f.For = gpusim.Duration(2 * interval) }))
		case 4:
			faults = append(faults, fault(gpusim.ExporterFrozen, func(f *gpusim.Fault) { f.Device, f.For = "", gpusim.Duration(4*interval) }))
		case 5:
			faults = append(faults, fault(gpusim.ClockSkew, func(f *gpusim.Fault) { f.Device, f.Timestamps = "", true }))
		}
	}
	return node, faults
}

// spoil breaks one page in four the way that bad exporters, proxies and relays do.
func spoil(rng *rand.Rand, page []byte) []byte {
	lines := strings.SplitAfter(string(page), "\n")
	at := rng.IntN(len(lines))
	switch rng.IntN(40) {
	case 0:
		return page[:rng.IntN(len(page))] // cut
	case 1:
		return bytes.ReplaceAll(page, []byte("\n"), []byte("\r\n"))
	case 2:
		lines = slices.Insert(lines, at, lines[at], "DCGM_FI_DEV_BRAND{gpu=\"0\"} Tesla\n", "go_goroutines 12\n")
	case 3:
		slices.Reverse(lines)
	case 4:
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	case 5:
		lines = append(lines, "# TYPE DCGM_FI_DEV_SOME_TOTAL counter\n", "DCGM_FI_DEV_SOME_TOTAL{gpu=\"0\",UUID=\"GPU-0\",link=\"2\"} 7\n",
			"DCGM_EXP_GPU_HEALTH_STATUS{gpu=\"0\",UUID=\"GPU-0\",health_watch=\"PCIE\"} 10\n",
			"DCGM_EXP_CLOCK_EVENTS_TOTAL{gpu=\"0\",UUID=\"GPU-0\",clock_event=\"power_cap\"} "+strconv.Itoa(rng.IntN(9))+"\n",
			"DCGM_FI_DEV_NVSWITCH_POWER_VDD{nvswitch=\"1\"} 40\n")
	case 6:
		return nil
	case 7:
		return []byte("<html>login</html>")
	case 8:
		return []byte(strings.NewReplacer(`UUID="`, `uuid="`, `pod="`, `exported_pod="`).Replace(string(page)))
	case 9:
		return []byte(strings.ReplaceAll(string(page), "} ", `,pod_label_team="a"} `))
	}
	return []byte(strings.Join(lines, ""))
}

// receive scrapes the pages with a receiver under a fake clock and returns what
// it emitted: a hash for each scrape and a line for each of its own metrics, sorted.
func receive(t *testing.T, nodes [][][]byte, config map[string]any) []string {
	sink := &sink{}
	lines := scrape(t, nodes, config, sink)
	require.Len(t, sink.lines, len(nodes)*scrapes)
	lines = append(lines, sink.lines...)
	slices.Sort(lines)
	return lines
}

// scrape has a receiver scrape the pages under a fake clock, and returns its own metrics.
func scrape(t *testing.T, nodes [][][]byte, config map[string]any, next consumer.Metrics) (lines []string) {
	var mu sync.Mutex // over served
	served := make([]int, len(nodes))
	mux := http.NewServeMux()
	mux.HandleFunc("/{node}", func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.PathValue("node"))
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		page := nodes[i][served[i]]
		served[i]++
		mu.Unlock()
		_, _ = w.Write(page)
	})
	// An open connection would stop the fake clock.
	server := httptest.NewUnstartedServer(mux)
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	defer server.Close()
	synctest.Test(t, func(t *testing.T) {
		endpoints := make([]any, 0, len(nodes))
		for i := range nodes {
			endpoints = append(endpoints, fmt.Sprintf("%s/%d", server.URL, i))
		}
		keys := map[string]any{"endpoints": endpoints, "collection_interval": interval.String()}
		maps.Copy(keys, config)
		cfg := dcgmreceiver.NewFactory().CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(keys).Unmarshal(cfg))

		telemetry := componenttest.NewTelemetry()
		set := receivertest.NewNopSettings(component.MustNewType("dcgm"))
		set.ID = component.MustNewID("dcgm")
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		r, err := dcgmreceiver.NewFactory().CreateMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(scrapes*interval - 1) // each node's tenth scrape has ended, and no eleventh has begun
		require.NoError(t, r.Shutdown(t.Context()))
		lines = own(t, telemetry)
		require.NoError(t, telemetry.Shutdown(context.WithoutCancel(t.Context())))
	})
	return lines
}

// sink keeps a hash of each batch of metrics.
type sink struct {
	mu    sync.Mutex
	lines []string
}

func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *sink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	normalize(md)
	raw, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%x\n", sha256.Sum256(raw)))
	return nil
}

// normalize takes out what differs from run to run: the port, and the moment at
// which a target is scraped. Times are counted from the scrape instead.
func normalize(md pmetric.Metrics) {
	var now pcommon.Timestamp
	points := func(f func(pmetric.NumberDataPoint)) {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					list := pmetric.NewNumberDataPointSlice()
					switch m.Type() {
					case pmetric.MetricTypeGauge:
						list = m.Gauge().DataPoints()
					case pmetric.MetricTypeSum:
						list = m.Sum().DataPoints()
					}
					for _, p := range list.All() {
						f(p)
					}
				}
			}
		}
	}
	points(func(p pmetric.NumberDataPoint) { now = max(now, p.Timestamp()) })
	points(func(p pmetric.NumberDataPoint) {
		p.SetTimestamp(now - p.Timestamp())
		if p.StartTimestamp() != 0 {
			p.SetStartTimestamp(1 + now - p.StartTimestamp())
		}
		withoutPort(p.Attributes())
	})
	for _, rm := range md.ResourceMetrics().All() {
		withoutPort(rm.Resource().Attributes())
	}
}

func withoutPort(attrs pcommon.Map) {
	if v, ok := attrs.Get("server.port"); ok {
		v.SetInt(0)
	}
}

// own are the receiver's own metrics.
func own(t *testing.T, telemetry *componenttest.Telemetry) (lines []string) {
	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &all))
	for _, sm := range all.ScopeMetrics {
		for _, m := range sm.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			of := map[string]int64{}
			for _, p := range sum.DataPoints {
				set, _ := attribute.NewSetWithFiltered(p.Attributes.ToSlice(), func(kv attribute.KeyValue) bool { return kv.Key != "exporter" })
				of[set.Encoded(attribute.DefaultEncoder())] += p.Value
			}
			for attrs, v := range of {
				lines = append(lines, fmt.Sprintf("%s{%s} %d\n", m.Name, attrs, v))
			}
		}
	}
	return lines
}
