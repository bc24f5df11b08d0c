// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/seendevices"
)

// The board of most tests.
const (
	gpu0 = "GPU-5b1e8a4c-0000-4000-8000-000000000000"
	gpu1 = "GPU-5b1e8a4c-0000-4000-8000-000000000001"
	pci0 = "0000:3b:00.0"
	pci1 = "0000:86:00.0"
)

// host is scraped, once every interval.
type host struct {
	t       testing.TB
	mapping *Mapping
	now     time.Time
}

func newHost(t testing.TB, groups ...nvmlproto.Group) *host {
	if groups == nil {
		groups = nvmlproto.Groups
	}
	return &host{t: t, now: time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC), mapping: New(Options{
		Groups: groups, NodeName: "node-a", ClusterName: "c1", HostName: "node-a", ScopeName: "nvml", FrozenAfter: 5, FrozenFor: time.Minute,
		Interval: pagetexttest.Interval, Registry: &seendevices.Registry{},
	})}
}

// scrape maps boards, one interval after those before.
func (h *host) scrape(boards ...nvmlproto.Board) scraped {
	h.t.Helper()
	return h.do(&Scrape{Up: true, Boards: boards})
}

func (h *host) do(s *Scrape) scraped {
	h.t.Helper()
	h.now = h.now.Add(pagetexttest.Interval)
	s.Time, s.Duration = h.now, 250*time.Millisecond
	if s.Driver == "" {
		s.Driver = "550.54.15"
	}
	r := h.mapping.Map(s)
	return scraped{r, pagetexttest.Result{Result: r.Result}}
}

// scraped is what became of a scrape.
type scraped struct {
	of Result
	pagetexttest.Result
}

func (s scraped) points(device string, metrics ...string) []string {
	return slices.DeleteFunc(s.Points(device), func(line string) bool {
		return !slices.ContainsFunc(metrics, func(m string) bool { return strings.HasPrefix(line, m+"{") })
	})
}

func at(n int) *int { return &n }

// board is a board with readings and instances.
func board(values ...nvmlproto.Value) nvmlproto.Board {
	return nvmlproto.Board{
		Thread: pci0, UUID: gpu0, Name: "NVIDIA H100 80GB HBM3", Serial: "1320221012345", VBIOS: "96.00.30.00.01",
		PCI: "00000000:3B:00.0", Arch: 9, Index: at(1), Minor: at(3), GPM: true, Values: values,
	}
}

func second(values ...nvmlproto.Value) nvmlproto.Board {
	b := board(values...)
	b.Thread, b.UUID, b.PCI, b.Index, b.Minor = pci1, gpu1, "00000000:86:00.0", at(0), at(0)
	return b
}

func value(name string, v float64) nvmlproto.Value {
	return nvmlproto.Value{Name: name, V: nvmlproto.Number(v)}
}

func returned(name string, code int) nvmlproto.Value {
	return nvmlproto.Value{Name: name, Return: code}
}

func TestBoard(t *testing.T) {
	r := newHost(t).scrape(board(value("utilization.gpu", 42), value("power.usage", 350_250), value("memory.total", 80<<30), value("memory.used", 20<<30)))
	require.Equal(t, []string{
		"gpu.exporter.scrape.duration{k8s.node.name=node-a} 0.25",
		"gpu.exporter.scrape.samples{k8s.node.name=node-a} 4",
		"gpu.exporter.up{k8s.node.name=node-a} 1",
	}, r.Points(""))
	require.Equal(t, []string{
		"hw.gpu.memory.limit{} 8.589934592e+10",
		"hw.gpu.memory.usage{} 2.147483648e+10",
		"hw.gpu.memory.utilization{} 0.25",
		"hw.gpu.utilization{hw.gpu.task=general} 0.42",
		"hw.power{} 350.25",
	}, r.Points(gpu0))
	require.Equal(t, map[string]any{
		names.HwID: gpu0, names.HwType: "gpu", names.HwVendor: "NVIDIA", names.HwModel: "NVIDIA H100 80GB HBM3",
		names.HwDriverVersion: "550.54.15", names.HwSerialNumber: "1320221012345", names.HwFirmware: "96.00.30.00.01",
		names.GPUIndex: int64(1), names.GPUMinor: int64(3), names.GPUPCIAddress: "0000:3b:00.0",
		names.HostName: "node-a", names.K8sNodeName: "node-a", names.K8sClusterName: "c1",
	}, r.Resource(gpu0))
	require.Empty(t, r.of.Refusals)
}
