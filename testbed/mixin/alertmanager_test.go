// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/dispatch"
	"github.com/prometheus/alertmanager/eventrecorder"
	"github.com/prometheus/alertmanager/featurecontrol"
	"github.com/prometheus/alertmanager/inhibit"
	"github.com/prometheus/alertmanager/provider/mem"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/judge"
)

func example(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.LoadFile(filepath.Join(root, "mixin", "alertmanager.example.yaml"))
	require.NoError(t, err)
	return c
}

// Alertmanager's own code reads the example and routes alerts.
func TestAlertmanagerRoutes(t *testing.T) {
	route := dispatch.NewRoute(example(t).Route, nil)
	for _, c := range []struct {
		labels   model.LabelSet
		receiver string
	}{
		{model.LabelSet{"alertname": "GPUWatchdog", "severity": "none"}, "heartbeat"},
		{model.LabelSet{"alertname": "GPUGatewayGone", "severity": "critical"}, "oncall"},
		{model.LabelSet{"alertname": "GPUServicePartial", "severity": "warning"}, "tickets"},
		{model.LabelSet{"alertname": "GPUIdleHeld", "severity": "info"}, "owners"},
		{model.LabelSet{"alertname": "GPUHealthFailed", "severity": "critical"}, "oncall"},
		{model.LabelSet{"alertname": "GPUHealthDegraded", "severity": "warning"}, "tickets"},
		{model.LabelSet{"alertname": "GPUXIDFatal", "severity": "info"}, "nobody"},
		{model.LabelSet{"alertname": "GPUServiceThrottled", "severity": "info"}, "nobody"},
	} {
		matched := route.Match(c.labels)
		require.Len(t, matched, 1, c.labels)
		assert.Equal(t, c.receiver, matched[0].RouteOpts.Receiver, c.labels)
	}
}

// Alertmanager's own inhibitor holds back what something else explains, for that
// service, node or device alone.
func TestAlertmanagerInhibits(t *testing.T) {
	service := func(alert, name string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(alert), "k8s_cluster_name": "c1", "k8s_namespace_name": "ml", "service_name": model.LabelValue(name)}
	}
	onNode := func(alert, node string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(alert), "k8s_cluster_name": "c1", "k8s_node_name": model.LabelValue(node)}
	}
	onBoard := func(alert, id string) model.LabelSet {
		return model.LabelSet{"alertname": model.LabelValue(alert), "k8s_cluster_name": "c1", "hw_id": model.LabelValue(id)}
	}
	for _, c := range []struct {
		name          string
		fires, target model.LabelSet
		held          bool
	}{
		{"throttling holds back latency", service("GPUServiceThrottled", "chat"), service("GPUAppLatencyP99", "chat"), true},
		{"of the same service", service("GPUServiceThrottled", "chat"), service("GPUAppLatencyP99", "search"), false},
		{"and not failures", service("GPUServiceThrottled", "chat"), service("GPUAppErrorRate", "chat"), false},
		{"no data holds back partial", service("GPUServiceNoData", "chat"), service("GPUServicePartial", "chat"), true},
		{"a lost node its exporter", onNode("GPUNodeLost", "n1"), onNode("GPUExporterDown", "n1"), true},
		{"and no other", onNode("GPUNodeLost", "n1"), onNode("GPUExporterDown", "n2"), false},
		{"a lost device its state", onBoard("GPUDeviceLost", "GPU-1"), onBoard("GPUHealthFailed", "GPU-1"), true},
		{"and that of no other", onBoard("GPUDeviceLost", "GPU-1"), onBoard("GPUHealthFailed", "GPU-2"), false},
		{"a failed board its errors", onBoard("GPUHealthFailed", "GPU-1"), onBoard("GPUXIDError", "GPU-1"), true},
		{"an exporter what is not known", onNode("GPUExporterDown", "n1"), onNode("GPUHealthUnknown", "n1"), true},
		{"no gateway, no lost nodes", model.LabelSet{"alertname": "GPUGatewayGone", "k8s_cluster_name": "c1"}, onNode("GPUNodeLost", "n1"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			alerts, err := mem.NewAlerts(t.Context(), time.Hour, 0, nil, promslog.NewNopLogger(), eventrecorder.NopRecorder(), prometheus.NewRegistry(), featurecontrol.NoopFlags{})
			require.NoError(t, err)
			t.Cleanup(alerts.Close)
			now := time.Now()
			require.NoError(t, alerts.Put(t.Context(), &alert.Alert{
				Alert: model.Alert{Labels: c.fires, StartsAt: now, EndsAt: now.Add(time.Hour)}, UpdatedAt: now,
			}))
			inhibitor := inhibit.NewInhibitor(alerts, example(t).InhibitRules, promslog.NewNopLogger(), eventrecorder.NopRecorder())
			go inhibitor.Run()
			inhibitor.WaitForLoading()
			t.Cleanup(inhibitor.Stop)
			assert.Equal(t, c.held, inhibitor.Mutes(t.Context(), c.target))
		})
	}
}

// Every alert that the example names exists.
func TestAlertmanagerNamesAlerts(t *testing.T) {
	var names []string
	for _, g := range newJudge(t, promqltest.LoadedStorage(t, ""), judge.NewEngine(), everything).Groups {
		for _, r := range g.AlertingRules() {
			names = append(names, r.Name())
		}
	}
	c := example(t)
	var patterns []string
	for _, r := range c.InhibitRules {
		for _, m := range append(r.SourceMatchers, r.TargetMatchers...) {
			patterns = append(patterns, m.Value)
		}
	}
	for _, r := range c.Route.Routes {
		for _, m := range r.Matchers {
			if m.Name == "alertname" {
				patterns = append(patterns, m.Value)
			}
		}
	}
	for _, p := range patterns {
		for _, part := range regexp.MustCompile(`\|`).Split(p, -1) {
			found := false
			for _, n := range names {
				found = found || regexp.MustCompile("^(?:"+part+")$").MatchString(n)
			}
			assert.True(t, found, "no alert is called %s", part)
		}
	}
}
