// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

// devicesOf are the devices on attributes, as text: "GPU-a GPU-b 2 H100".
func devicesOf(attrs pcommon.Map) string {
	var f []string
	if ids, ok := attrs.Get(names.GPUDeviceIDs); ok {
		for _, id := range ids.Slice().All() {
			f = append(f, id.Str())
		}
	}
	if n, ok := attrs.Get(names.GPUDeviceCount); ok {
		f = append(f, n.AsString())
	}
	if model := str(attrs, names.HwModel); model != "" {
		f = append(f, model)
	}
	return strings.Join(f, " ")
}

// spanOf passes one span of a resource through, and returns what the resource got. The
// span is of the time at, in seconds.
func (p *pipelines) spanOf(t *testing.T, at int64, resource string) string {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putAll(rs.Resource().Attributes(), fields(resource))
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetStartTimestamp(pcommon.Timestamp(at * 1e9))
	span.SetEndTimestamp(pcommon.Timestamp(at * 1e9))
	require.NoError(t, p.traces.ConsumeTraces(t.Context(), td))
	require.Empty(t, devicesOf(span.Attributes()))
	return devicesOf(rs.Resource().Attributes())
}

func (p *pipelines) learn(t *testing.T, text string) {
	require.NoError(t, p.metrics.ConsumeMetrics(t.Context(), parse(text)))
}

func withPodDevices() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.PodDevices = true
	return cfg
}

const (
	aPod = "k8s.namespace.name=ml k8s.pod.name=a-0 "
	bPod = "k8s.namespace.name=ml k8s.pod.name=b-0 "
)

// A resource that names a pod gets its devices, if it is certain which they are.
func TestPodDevices(t *testing.T) {
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("ml/a-0/main 1 hw.id=GPU-%02d", i))
	}
	first16 := "GPU-00 GPU-01 GPU-02 GPU-03 GPU-04 GPU-05 GPU-06 GPU-07 GPU-08 GPU-09 GPU-10 GPU-11 GPU-12 GPU-13 GPU-14 GPU-15"
	for _, tt := range []struct {
		name      string
		telemetry string
		snapshot  []string
		resource  string // of the pod a-0, where empty
		want      string
		off       bool
	}{
		{name: "one", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-b"}, want: "GPU-a 1"},
		{name: "off", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, off: true},
		{name: "sorted, of two containers", snapshot: []string{"ml/a-0/side 1 hw.id=GPU-z", "ml/a-0/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-f"}, want: "GPU-a GPU-z 2"},
		{name: "two containers, one device", snapshot: []string{"ml/a-0/side 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-a"}, want: "GPU-a 1"},
		{name: "more than are listed", snapshot: many, want: first16 + " 20"},
		{
			name: "one model", telemetry: telemetry(5, "GPU-a", "hw.model=H100") + telemetry(5, "GPU-b", "hw.model=H100"),
			snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"}, want: "GPU-a GPU-b 2 H100",
		},
		{
			name: "two models", telemetry: telemetry(5, "GPU-a", "hw.model=H100") + telemetry(5, "GPU-b", "hw.model=L4"),
			snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"}, want: "GPU-a GPU-b 2",
		},
		{
			name: "a model of which one is not known", telemetry: telemetry(5, "GPU-a", "hw.model=H100"),
			snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"}, want: "GPU-a GPU-b 2",
		},
		{
			name: "MIG instances", telemetry: telemetry(5, "GPU-m/3", "hw.model=A100"),
			snapshot: []string{"ml/a-0/main 1 hw.id=GPU-m/3", "ml/b-0/main 1 hw.id=GPU-m/4"}, want: "GPU-m/3 1 A100",
		},
		{
			name: "a MIG instance that the kubelet names otherwise", telemetry: telemetry(5, "GPU-m/3", "k8s.node.name=n1 gpu.mig.uuid="+mig),
			snapshot: []string{"ml/a-0/main 1 hw.id=n1/" + mig}, want: "GPU-m/3 1",
		},
		{name: "a device that the kubelet could not name", snapshot: []string{"ml/a-0/main 1 hw.id=n1/" + mig, "ml/a-0/main 1 hw.id=GPU-a"}},
		{
			name: "replicas", telemetry: telemetry(5, "GPU-s", "hw.model=L4"), want: "GPU-s::1 GPU-s::2 2 L4",
			snapshot: []string{"ml/a-0/main 0.25 gpu.sharing=mps hw.id=GPU-s::1", "ml/a-0/main 0.25 gpu.sharing=mps hw.id=GPU-s::2", "ml/b-0/main 0.25 gpu.sharing=mps hw.id=GPU-s::3"},
		},
		{name: "a claim of two pods", snapshot: []string{"ml/a-0/main 1 gpu.attribution.source=dra hw.id=GPU-a", "ml/b-0/main 1 gpu.attribution.source=dra hw.id=GPU-a"}, want: "GPU-a 1"},
		{name: "contested", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"}},
		{name: "contested between others", snapshot: []string{"ml/c-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"}, want: "GPU-b 1"},
		{name: "a contested replica", snapshot: []string{"ml/a-0/main 0.5 gpu.sharing=mps hw.id=GPU-s::1", "ml/b-0/main 0.5 gpu.sharing=mps hw.id=GPU-s::1"}},
		{name: "a GPU whose instance is held too", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-m", "ml/b-0/main 1 hw.id=GPU-m/3"}},
		{name: "no device", snapshot: []string{"ml/b-0/main 1 hw.id=GPU-b"}},
		{name: "another namespace", snapshot: []string{"web/a-0/main 1 hw.id=GPU-a"}},
		{name: "no pod", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: "service.name=a"},
		{name: "no namespace", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: "k8s.pod.name=a-0"},
		{name: "a device too", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: aPod + "hw.id=GPU-b"},
		{name: "its node", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: aPod + "k8s.node.name=n1 k8s.cluster.name=c", want: "GPU-a 1"},
		{name: "another node", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: aPod + "k8s.node.name=n2"},
		{name: "started before the snapshot", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: aPod + "k8s.pod.start_time=1970-01-01T00:00:10Z", want: "GPU-a 1"},
		{name: "started after it", snapshot: []string{"ml/a-0/main 1 hw.id=GPU-a"}, resource: aPod + "k8s.pod.start_time=1970-01-01T00:00:11Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := withPodDevices()
				cfg.PodDevices = !tt.off
				p := startPipelines(t, cfg)
				defer p.shutdown(t)
				if tt.telemetry != "" {
					p.learn(t, tt.telemetry)
				}
				p.learn(t, snapshot(10, tt.snapshot...))
				time.Sleep(time.Second)
				resource := cmp.Or(tt.resource, aPod)
				require.Equal(t, tt.want, p.spanOf(t, 20, resource))

				ld := plog.NewLogs()
				rl := ld.ResourceLogs().AppendEmpty()
				putAll(rl.Resource().Attributes(), fields(resource))
				rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetTimestamp(20e9)
				require.NoError(t, p.logs.ConsumeLogs(t.Context(), ld))
				require.Equal(t, tt.want, devicesOf(rl.Resource().Attributes()))
			})
		})
	}
}

// Devices follow their pod: what moved, restarted or is no longer reported is never
// answered by what was.
func TestPodDevicesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPipelines(t, withPodDevices())
		defer p.shutdown(t)
		at := int64(10)
		next := func(lines ...string) {
			at += 15
			p.learn(t, snapshot(int(at), lines...))
			time.Sleep(time.Second)
		}
		require.Empty(t, p.spanOf(t, at, aPod), "after a start nothing is known")
		p.learn(t, snapshot(int(at), "ml/a-0/main 1 hw.id=GPU-a"))
		require.Empty(t, p.spanOf(t, at, aPod), "a further part of the first snapshot may have more")
		time.Sleep(time.Second)
		require.Equal(t, "GPU-a 1", p.spanOf(t, at, aPod))
		require.Empty(t, p.spanOf(t, at-1, aPod), "before the first snapshot another pod of that name may have run")
		require.Empty(t, p.spanOf(t, at+100*365*86400, aPod), "of a future of which no snapshot is")

		since := at
		next("ml/a-0/main 1 hw.id=GPU-a", "- 0 hw.id=GPU-b")
		require.Equal(t, "GPU-a 1", p.spanOf(t, since, aPod), "known since the first snapshot with these devices")

		next("- 0 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b")
		require.Equal(t, "GPU-b 1", p.spanOf(t, at, aPod), "the pod came back with another device")
		require.Empty(t, p.spanOf(t, at-1, aPod), "a span of the time before")

		next("ml/b-0/main 1 hw.id=GPU-a")
		require.Empty(t, p.spanOf(t, at, aPod), "it has none any more")
		require.Equal(t, "GPU-a 1", p.spanOf(t, at, bPod))

		next("ml/a-0/main 1 hw.id=GPU-a")
		at += 15
		p.learn(t, snapshot(int(at), "ml/a-0/main 1 hw.id=GPU-b"))
		require.Empty(t, p.spanOf(t, at, aPod), "GPU-a may be in a further part")
		p.learn(t, snapshot(int(at), "ml/a-0/main 1 hw.id=GPU-a"))
		require.Equal(t, "GPU-a GPU-b 2", p.spanOf(t, at, aPod), "no device is missing")

		time.Sleep(46 * time.Second)
		require.Empty(t, p.spanOf(t, at, aPod), "too old")
	})
}

// Of records that share a resource each has what is known of its time.
func TestPodDevicesOfSomeRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPipelines(t, withPodDevices())
		defer p.shutdown(t)
		p.learn(t, snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-b"))
		time.Sleep(time.Second)
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		putAll(rs.Resource().Attributes(), fields(aPod))
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for _, s := range []struct {
			at    int
			attrs string
		}{{9, ""}, {11, ""}, {11, "hw.id=GPU-b"}, {11, bPod}} {
			span := spans.AppendEmpty()
			span.SetStartTimestamp(pcommon.Timestamp(s.at * 1e9))
			span.SetEndTimestamp(pcommon.Timestamp(s.at * 1e9))
			putAll(span.Attributes(), fields(s.attrs))
		}
		require.NoError(t, p.traces.ConsumeTraces(t.Context(), td))
		require.Empty(t, devicesOf(rs.Resource().Attributes()))
		var got []string
		for _, span := range spans.All() {
			got = append(got, devicesOf(span.Attributes()))
		}
		require.Equal(t, []string{"", "GPU-a 1", "", ""}, got, "what names a device or another pod is about that")
	})
}

// Where several nodes are known, the resource has to name its own, and a device that two
// nodes list is contested.
func TestPodDevicesOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startPipelines(t, withPodDevices())
		defer p.shutdown(t)
		on := func(node string, lines ...string) {
			p.learn(t, strings.ReplaceAll(snapshot(10, lines...), "k8s.node.name=n1", "k8s.node.name="+node))
			time.Sleep(time.Second)
		}
		on("n1", "ml/a-0/main 1 hw.id=GPU-a", "ml/b-0/main 1 hw.id=GPU-b")
		on("n2", "ml/a-0/main 1 hw.id=GPU-c")
		require.Equal(t, "GPU-a 1", p.spanOf(t, 10, aPod+"k8s.node.name=n1"))
		require.Equal(t, "GPU-c 1", p.spanOf(t, 10, aPod+"k8s.node.name=n2"))
		require.Empty(t, p.spanOf(t, 10, aPod), "it may be either")
		on("n3", "ml/c-0/main 1 hw.id=GPU-a")
		require.Empty(t, p.spanOf(t, 10, aPod+"k8s.node.name=n1"))
		require.Equal(t, "GPU-b 1", p.spanOf(t, 10, bPod+"k8s.node.name=n1"))

		// Nodes that are silent are forgotten: the one that is left need not be named.
		time.Sleep(11 * time.Minute)
		on("n2", "ml/a-0/main 1 hw.id=GPU-c")
		require.Equal(t, "GPU-c 1", p.spanOf(t, 10, aPod))
	})
}

// A snapshot that is cut by max_devices does not show what a pod has.
func TestPodDevicesBeyondALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := withPodDevices()
		cfg.MaxDevices = 1
		p := startPipelines(t, cfg)
		defer p.shutdown(t)
		p.learn(t, snapshot(10, "ml/a-0/main 1 hw.id=GPU-a", "ml/a-0/main 1 hw.id=GPU-b"))
		time.Sleep(time.Second)
		require.Empty(t, p.spanOf(t, 10, aPod))
		p.learn(t, snapshot(25, "ml/a-0/main 1 hw.id=GPU-a"))
		time.Sleep(time.Second)
		require.Equal(t, "GPU-a 1", p.spanOf(t, 25, aPod))
	})
}

// BenchmarkPodDevices is one resource with one span, as k8s_attributes leaves it, of a
// pod with so many devices: to find them (lookup), and to find and to write them.
// Building the resource is not timed.
func BenchmarkPodDevices(b *testing.B) {
	for _, tt := range []struct {
		name string
		n    int
	}{{"lookup", 8}, {"1", 1}, {"8", 8}, {"16", 16}} {
		b.Run(tt.name, func(b *testing.B) {
			var lines []string
			for d := range tt.n {
				lines = append(lines, fmt.Sprintf("ml/a-0/main 1 hw.id=GPU-c4529c8d-69c4-b61d-e0bc-7b24600960%02d", d))
			}
			cfg := withPodDevices()
			r := records{cfg: cfg, memory: shared.take(cfg)}
			defer shared.release(cfg)
			now := time.Unix(11, 0)
			newPipeline(cfg, r.memory).Process(parse(snapshot(10, lines...)), now.Add(-time.Second))
			resource := attrsOf(aPod + "k8s.node.name=n1 k8s.cluster.name=c k8s.pod.uid=0b7e k8s.pod.start_time=1970-01-01T00:00:09Z " +
				"k8s.deployment.name=a service.name=a telemetry.sdk.name=opentelemetry telemetry.sdk.language=python telemetry.sdk.version=1.39")
			all := slices.Values([]record{{pcommon.NewMap(), 10e9, 11e9}})
			resources := make([]pcommon.Map, 256)
			b.ReportAllocs()
			if tt.name == "lookup" {
				for b.Loop() {
					if identity.NamedDevice(resource) != "" || r.devices(resource, now) == nil {
						b.Fatal("not found")
					}
				}
				return
			}
			for i := 0; b.Loop(); i++ {
				if i %= len(resources); i == 0 {
					b.StopTimer()
					for j := range resources {
						resources[j] = pcommon.NewMap()
						resource.CopyTo(resources[j])
					}
					b.StartTimer()
				}
				r.attribute(b.Context(), resources[i], all, now)
			}
			require.NotEmpty(b, devicesOf(resources[0]))
		})
	}
}
