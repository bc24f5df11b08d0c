// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/metadata"
)

// FuzzLabels feeds any labels, on the resource and on two points: nothing
// panics, no live point is lost but a shared device's second row, and identity
// is whole and consistent. One pair is KEY=VALUE, pairs are separated by commas.
func FuzzLabels(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "UUID=GPU-a,pod=p,namespace=n,container=c", "UUID=GPU-a,pod=q,namespace=n"},
		{"service.name=x", "uuid=GPU-a,exported_pod=p,exported_namespace=n,pod=e", "gpu_uuid=GPU-a,GPU_I_ID=7"},
		{"hw.id=GPU-a,pod=p,namespace=n,pod_label_app=größe", "hw.id=GPU-a", "hw.id=GPU-a,x=1"},
		{"hw.id=GPU-a,dcgm.holders=p", "UUID=\"\n\\", "\xff=\xff,UUID=\xff"},
		{"k8s.pod.name=e", "UUID=GPU-a,pod=e,namespace=", "UUID=GPU-a,vgpu=1,pod=p,namespace=n"},
		{"pod=p", "0", "hw.id=GPU-a"},
		{"hw.type=fan", "hw.id=GPU-a/1,UUID=GPU-a,GPU_I_ID=1", "UUID=GPU-a,GPU_I_ID=1,pod=,pod_uid="},
		{"hw.type=gpu", "hw.id=GPU-a/1,UUID=GPU-a,GPU_I_ID=1", "uuid=0b7e,pod=p,namespace=n"},
	} {
		f.Add(seed[0], seed[1], seed[2], false)
		f.Add(seed[0], seed[1], seed[2], true)
	}
	f.Fuzz(func(t *testing.T, resource, first, second string, marker bool) {
		p, err := newProcessor(createDefaultConfig().(*Config),
			processortest.NewNopSettings(metadata.Type), consumertest.NewNop())
		require.NoError(t, err)
		p.pipeline = newPipeline(p.cfg, newMemory(p.cfg))
		for at := range 2 {
			md := pmetric.NewMetrics()
			rm := md.ResourceMetrics().AppendEmpty()
			putAll(rm.Resource().Attributes(), strings.Split(resource, ","))
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("m")
			in := m.SetEmptyGauge().DataPoints()
			for i, labels := range []string{first, second} {
				ts := pcommon.Timestamp((at + 1) * 1e9)
				flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(marker && at == 1 && i == 0)
				fill(in.AppendEmpty(), ts, flags, strings.Split(labels, ","))
			}
			p.process(md, time.Unix(int64(at), 0))
			live := 0
			for _, rm := range md.ResourceMetrics().All() {
				live += points.CountLive(rm)
				checkDevice(t, rm, resource)
			}
			if !marker {
				require.GreaterOrEqual(t, live, 1)
				require.LessOrEqual(t, live, 2)
			}
		}
	})
}

// checkDevice checks one resource that left the processor.
func checkDevice(t *testing.T, rm pmetric.ResourceMetrics, in string) {
	attrs := rm.Resource().Attributes()
	id := str(attrs, names.HwID)
	if hardware := str(attrs, names.HwType); id == "" || hardware != "" && hardware != names.HwTypeGPU {
		return
	}
	who := owner.Of(attrs)
	if !strings.Contains(in, "k8s.") {
		require.Equal(t, who.Pod == "", who.Namespace == "", "a holder is whole or unknown: %v", who)
	}
	for key := range attrs.All() {
		require.False(t, identity.Consumed(key), key)
	}
	if strings.Contains(in, names.HwID) {
		return // a device's resource: its points are left alone
	}
	for _, p := range rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
		require.Equal(t, id, str(p.Attributes(), names.HwID))
		for key := range p.Attributes().All() {
			require.False(t, identity.Consumed(key), key)
		}
	}
}
