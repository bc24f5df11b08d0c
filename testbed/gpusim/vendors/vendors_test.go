// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func fleet(t *testing.T, nodes ...Node) *Fleet {
	t.Helper()
	f, err := New(Config{Seed: 1, Nodes: nodes}, func() time.Time { return start })
	require.NoError(t, err)
	return f
}

// every is a node of each model, mode and version.
func every() (all []Node) {
	for _, m := range Models("") {
		computes := m.Compute
		if len(computes) == 0 {
			computes = []string{""}
		}
		for _, version := range versions[m.Vendor] {
			for _, compute := range computes {
				memories := []string{""}
				if compute != "" {
					memories = m.Memories(compute)
				}
				for _, memory := range memories {
					all = append(all, Node{Name: fmt.Sprintf("n%d", len(all)), Model: m.Key, Boards: 2, Version: version, Compute: compute, Memory: memory,
						Pods: []Pod{{Namespace: "inference", Name: "llama", Container: "main", Devices: []string{"0"}}}})
				}
			}
		}
	}
	return all
}

// TestPagesAreText: every page can be read by Prometheus' own parser, and is the same
// when it is asked for again.
func TestPagesAreText(t *testing.T) {
	f := fleet(t, every()...)
	for _, name := range f.Nodes() {
		for at := range 3 {
			now := start.Add(time.Duration(at) * 15 * time.Second)
			page, err := f.Page(name, now)
			require.NoError(t, err)
			parser := expfmt.NewTextParser(model.LegacyValidation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(string(page)))
			require.NoError(t, err, "%s\n%s", name, page)
			assert.Greater(t, len(families), 10)
			again, err := f.Page(name, now)
			require.NoError(t, err)
			require.Equal(t, string(page), string(again))
		}
	}
}

// TestTruthAddsUp: partitions are within their board, ids are there once, and the
// plugin's ids belong to one owner each.
func TestTruthAddsUp(t *testing.T) {
	f := fleet(t, every()...)
	now := start.Add(time.Minute)
	ids := map[string]bool{}
	for _, n := range f.TruthAt(now).Nodes {
		for _, d := range n.Devices {
			require.False(t, ids[d.ID], "%s is there twice", d.ID)
			ids[d.ID] = true
			if d.Parent != "" {
				require.True(t, ids[d.Parent], "the board of %s comes first", d.ID)
				require.True(t, strings.HasPrefix(d.ID, d.Parent+"/"))
			}
		}
		announced, grants := f.Kubelet(n.Name, now)
		given := map[string]Owner{}
		for _, g := range grants {
			for resource, list := range g.IDs {
				for _, id := range list {
					require.Contains(t, announced[resource], id)
					require.NotContains(t, given, resource+id)
					given[resource+id] = g.Owner
				}
			}
		}
		require.NotEmpty(t, given)
		for _, list := range announced {
			slices.Sort(list)
			require.Len(t, slices.Compact(slices.Clone(list)), len(list), "ids of %s", n.Name)
		}
	}
}

func TestUUIDHoldsTheUniqueID(t *testing.T) {
	b := board{uid: 0xcce0c6d49f5b0d86}
	m, err := findModel("MI300X")
	require.NoError(t, err)
	assert.Equal(t, "ccff74a1-0000-0001-80e0-c6d49f5b0d86", b.uuid(m, 1))
}

func TestFaults(t *testing.T) {
	zero := 0
	for _, tc := range []struct {
		kind  Kind
		model string
		fault Fault
		check func(t *testing.T, f *Fleet, page string, err error)
	}{
		{ZeroUUID, "MI300X", Fault{}, contains(`gpu_uuid="00000000-0000-0000-0000-000000000000"`)},
		{NoUUID, "MI300X", Fault{}, lacks(`gpu_uuid`)},
		{NoSerial, "MI300X", Fault{}, contains(`serial_number=""`)},
		{PartitionMissing, "MI300X", Fault{Board: &zero}, lacks(`gpu_id="15"`)},
		{PartitionRepeated, "MI300X", Fault{Partition: 0}, lacks(`gpu_partition_id="1"`)},
		{ModeChange, "MI300X", Fault{Compute: "dpx", Memory: "nps2"}, contains(`gpu_compute_partition_type="dpx"`)},
		{MixedNames, "MI300X", Fault{}, contains("\namd_gpu_gfx_activity{")},
		{EmptyPage, "MI300X", Fault{}, lacks("gpu_gfx_activity")},
		{RateLimit, "Gaudi2", Fault{}, fails("429")},
		{NoData, "Flex140", Fault{}, fails("#nodata")},
		{PowerSpike, "Flex140", Fault{}, contains("} 3.69e+12")},
		{RAS, "MI300X", Fault{Code: 24}, contains(`severity="fatal",vbios_version="022.040.003.043.000001"} 24`)},
		{ReadingsFail, "Gaudi3", Fault{}, lacks("habanalabs_memory_total_bytes{Serial=\"AN00000001\"} 1")},
		{DeviceFails, "Gaudi3", Fault{}, contains(`UUID="na"`)},
		{FieldsRenamed, "MI300X", Fault{}, contains("\ngpu_gfx_activity_v2{")},
		{FieldsRenamed, "Gaudi3", Fault{}, lacks("habanalabs_utilization{")},
		{FieldsRenamed, "B60", Fault{}, lacks("hw_power_watts{")},
		{BadPage, "B60", Fault{}, func(t *testing.T, _ *Fleet, page string, _ error) { assert.False(t, strings.HasSuffix(page, "\n")) }},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			n := Node{Name: "n", Model: tc.model, Boards: 2}
			if tc.model == "MI300X" {
				n.Compute, n.Memory = "cpx", "nps4"
			}
			if tc.kind == NoData {
				n.Version = "1"
			}
			f := fleet(t, n)
			tc.fault.Node, tc.fault.Kind = "n", tc.kind
			id, err := f.StartFault(tc.fault)
			require.NoError(t, err)
			page, err := f.Page("n", start)
			tc.check(t, f, string(page), err)
			assert.Equal(t, []Kind{tc.kind}, f.Active("n", start))
			require.NoError(t, f.EndFault(id))
			if tc.kind.stays() {
				return
			}
			page, err = f.Page("n", start)
			require.NoError(t, err)
			assert.Greater(t, strings.Count(string(page), "\n"), 50)
		})
	}
}

type check = func(*testing.T, *Fleet, string, error)

func contains(text string) check {
	return func(t *testing.T, _ *Fleet, page string, err error) {
		require.NoError(t, err)
		assert.Contains(t, page, text)
	}
}

func lacks(text string) check {
	return func(t *testing.T, _ *Fleet, page string, err error) {
		require.NoError(t, err)
		assert.NotContains(t, page, text)
	}
}

func fails(text string) check {
	return func(t *testing.T, _ *Fleet, _ string, err error) { assert.ErrorContains(t, err, text) }
}

func TestBadConfigurations(t *testing.T) {
	for _, tc := range []struct {
		node Node
		want string
	}{
		{Node{Name: "n", Model: "MI999", Boards: 1}, `unknown model "MI999"`},
		{Node{Name: "n", Model: "MI300X"}, "boards: 0"},
		{Node{Name: "n", Model: "MI300X", Boards: 1, Compute: "tpx"}, `compute: "tpx"`},
		{Node{Name: "n", Model: "MI300X", Boards: 1, Memory: "nps4"}, `memory: "nps4"`},
		{Node{Name: "n", Model: "Gaudi2", Boards: 1, Compute: "cpx"}, "only AMD boards"},
		{Node{Name: "n", Model: "B60", Boards: 1, Version: "3"}, `version: "3"`},
		{Node{Name: "n", Model: "B60", Boards: 1, Pods: []Pod{{Name: "p", Devices: []string{"x"}}}}, `device "x"`},
		{Node{Name: "n", Model: "B60", Boards: 1, Pods: []Pod{{Name: "p", Devices: []string{"1"}}}}, "has 1 boards"},
		{Node{Name: "n", Model: "B60", Boards: 1, Pods: []Pod{{Name: "p", Devices: []string{"0", "0"}}}}, "belongs to p"},
	} {
		_, err := New(Config{Nodes: []Node{tc.node}}, time.Now)
		assert.ErrorContains(t, err, tc.want)
	}
}

func TestHandler(t *testing.T) {
	f := fleet(t, Node{Name: "n", Model: "Gaudi2", Boards: 1})
	get := func() (int, string) {
		w := httptest.NewRecorder()
		f.Handler("n").ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		body, _ := io.ReadAll(w.Result().Body)
		return w.Code, string(body)
	}
	code, body := get()
	assert.Equal(t, 200, code)
	assert.Contains(t, body, "habanalabs_utilization{")
	_, err := f.StartFault(Fault{Node: "n", Kind: RateLimit})
	require.NoError(t, err)
	code, _ = get()
	assert.Equal(t, 429, code)
}
