// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
)

const (
	poll      = 5 * time.Second // of the kubelets
	scrape    = 15 * time.Second
	slowest   = time.Minute      // refresh of an exporter
	staleness = 45 * time.Second // of a utilization
)

// exporting serves the exporters of a fleet. An open connection would stop the fake clock.
func exporting(t *testing.T, fleet *gpusim.Fleet) map[string]string {
	urls := map[string]string{}
	for _, node := range fleet.Nodes() {
		server := httptest.NewUnstartedServer(exporters.Handler(fleet, node, "", func() {}))
		server.Config.SetKeepAlivesEnabled(false)
		server.Start()
		t.Cleanup(server.Close)
		urls[node] = server.URL + "/metrics"
	}
	return urls
}

// scraping starts a dcgm receiver for each node.
func scraping(t *testing.T, urls map[string]string, into consumer.Metrics) (all []component.Component) {
	factory := dcgmreceiver.NewFactory()
	for node, url := range urls {
		cfg := factory.CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(map[string]any{
			"endpoints": []any{url}, "collection_interval": scrape.String(), "node_name": node,
		}).Unmarshal(cfg))
		r, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), cfg, into)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		all = append(all, r)
	}
	return all
}

// allocations is gpu.allocation of a node, as the agent that polls its kubelet emits it.
func allocations(truth *gpusim.NodeTruth, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range truth.Devices {
		d := &truth.Devices[i]
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr(names.K8sNodeName, truth.Name)
		value := 0.0
		if d.Pod != "" {
			value = 1
			attrs.PutStr(names.K8sNamespaceName, d.Namespace)
			attrs.PutStr(names.K8sPodName, d.Pod)
			attrs.PutStr(names.K8sContainerName, d.Container)
			attrs.PutStr(names.ServiceName, d.Service)
		}
		p := names.GPUAllocation.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetDoubleValue(value)
		p.Attributes().PutStr(names.HwID, d.ID)
		p.Attributes().PutStr(names.K8sNodeName, truth.Name)
		p.Attributes().PutStr(names.K8sResourceName, "nvidia.com/gpu")
		p.Attributes().PutBool(names.GPUAllocationResolved, true)
	}
	return md
}

// clock is the time of a bubble for what runs outside of it.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.Load()).UTC() }
