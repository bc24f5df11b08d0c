// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// What crosses the wire is kept: every number, whole or not, and markers.
func TestRecorder(t *testing.T) {
	r, err := Record()
	require.NoError(t, err)
	defer r.Close()
	conn, err := grpc.NewClient(r.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.UseCompressor("gzip")))
	require.NoError(t, err)
	defer conn.Close()

	md := pmetric.NewMetrics()
	device := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{
		names.K8sNodeName: "a", names.HwParent: "GPU-0", names.ServiceName: "s", names.GPUMIGProfile: "1g.5gb",
		names.K8sNamespaceName: "n", names.K8sPodName: "ann", names.K8sContainerName: "c", names.K8sPodUID: "1",
	} {
		device.Resource().Attributes().PutStr(k, v)
	}
	metrics := device.ScopeMetrics().AppendEmpty().Metrics()
	usage := names.GPUMemoryUsage.Init(metrics.AppendEmpty()).AppendEmpty()
	usage.SetIntValue(7)
	usage.SetTimestamp(pcommon.NewTimestampFromTime(at(1)))
	usage.Attributes().PutStr(names.HwID, "GPU-1")
	end := names.GPUUtilization.Init(metrics.AppendEmpty()).AppendEmpty()
	end.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	end.Attributes().PutStr("z", "last")
	end.Attributes().PutStr(names.HwGPUTask, "general")
	up := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	names.HwPower.Init(up).AppendEmpty().SetDoubleValue(.5)
	_, err = pmetricotlp.NewGRPCClient(conn).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(md))
	require.NoError(t, err)

	points := r.Since(0)
	require.Len(t, points, 3)
	for i := range points {
		assert.WithinDuration(t, time.Now(), points[i].Arrived, time.Minute)
		points[i].Arrived = time.Time{}
	}
	epoch := time.Unix(0, 0).UTC()
	assert.Equal(t, []Point{
		{Time: at(1), Metric: "hw.gpu.memory.usage", Node: "a", Device: "GPU-1", Parent: "GPU-0", Owner: ann, Service: "s", Description: "gpu.mig.profile=1g.5gb\n", Value: 7},
		{Time: epoch, Metric: "hw.gpu.utilization", Node: "a", Parent: "GPU-0", Owner: ann, Service: "s", Description: "gpu.mig.profile=1g.5gb\n", Ended: true, Attributes: "hw.gpu.task=general\nz=last\n"},
		{Time: epoch, Metric: "hw.power", Value: .5},
	}, points)
	assert.Equal(t, "last", points[1].Attribute("z"))
	assert.Empty(t, points[1].Attribute("hw.gpu"))
	assert.Len(t, r.Since(2), 1)
	assert.Equal(t, 3, r.Len())
}

// From placement to the first point that names the owner.
func TestLatency(t *testing.T) {
	arrived := func(p Point, second float64) Point { p.Arrived = at(second); return p }
	l := Latency([]Point{
		arrived(usage(10, ann), 10.5), arrived(allocation(10, 1, bob), 20), arrived(usage(30, bob), 33), arrived(usage(31, bob), 34),
	}, []Placement{
		{Device: "GPU-1", Owner: ann, At: at(10)}, {Device: "GPU-1", Owner: bob, At: at(30)}, {Device: "GPU-2", Owner: bob, At: at(30)},
	})
	assert.Equal(t, Latencies{
		Reported: []time.Duration{0, 0},
		Arrived:  []time.Duration{500 * time.Millisecond, 3 * time.Second},
		Worst:    Placement{Device: "GPU-1", Owner: ann, At: at(10)},
	}, l)
	assert.Contains(t, l.In(2*time.Second), "its arrival median 3.00 s (1.50), max 3.00 s (1.50); 2 placements")
	assert.Equal(t, "first attributed point: no placement", Latencies{}.In(time.Second))
}
