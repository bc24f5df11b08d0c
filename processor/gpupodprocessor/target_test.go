// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/owner"
)

// A scraper labels points with its target's pod. Beside the exporter's own
// labels, which are then renamed, that is plain; where a device is free it looks
// like an owner.
func TestExporterIsNoOwner(t *testing.T) {
	const held = "resource hw.id=GPU-a hw.type=gpu k8s.container.name=c k8s.namespace.name=n k8s.pod.name=p service.name=p"
	const free = "resource hw.id=GPU-a hw.type=gpu"
	for _, tt := range []struct{ name, resource, labels, want string }{
		{
			"renamed labels win, the plain ones are the exporter's", "service.name=x",
			"exported_pod=p exported_namespace=n exported_container=c pod=exp namespace=mon container=main", held,
		}, {
			"the order of labels does not matter", "service.name=x",
			"pod=exp namespace=mon container=main exported_container=c exported_namespace=n exported_pod=p", held,
		}, {
			"only the pod was renamed: the namespace is the exporter's word", "service.name=x",
			"exported_pod=p pod=exp namespace=n", strings.ReplaceAll(held, "k8s.container.name=c ", ""),
		}, {
			"only the namespace was renamed: the pod is the exporter's word", "service.name=x",
			"exported_namespace=n namespace=mon pod=p", strings.ReplaceAll(held, "k8s.container.name=c ", ""),
		}, {
			"a plain container beside renamed labels may be the exporter's", "service.name=x",
			"exported_pod=p exported_namespace=n pod=exp namespace=mon container=main",
			strings.ReplaceAll(held, "k8s.container.name=c ", ""),
		}, {
			"the pod that was scraped, according to discovery", "k8s.pod.name=exp k8s.namespace.name=mon",
			"pod=exp namespace=mon container=main", free,
		}, {
			"the pod that was scraped, its namespace unknown", "k8s.pod.name=exp",
			"pod=exp namespace=mon container=main", free,
		}, {
			"a pod of that name in another namespace holds it", "k8s.pod.name=p k8s.namespace.name=mon",
			"pod=p namespace=n container=c", held,
		}, {
			"a pod of the DaemonSet named like the job", "service.name=gpu-metrics",
			"pod=gpu-metrics-x2x9k namespace=mon container=main", free,
		}, {
			"a job of a PodMonitor", "service.name=mon/gpu-metrics",
			"pod=gpu-metrics-x2x9k namespace=mon container=main", free,
		}, {
			"a pod of the DaemonSet named like the Service", "service.name=x",
			"service=gpu-metrics pod=gpu-metrics-x2x9k namespace=mon container=main", free + " ",
		}, {
			"the exporter's usual container", "service.name=x",
			"pod=abc namespace=gpu-operator container=nvidia-dcgm-exporter", free,
		}, {
			"a holder whose name begins like the job's is a holder", "service.name=p",
			"pod=p namespace=n container=c", held,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept := ""
			if strings.Contains(tt.labels, "service=") {
				kept = " service=gpu-metrics"
			}
			start(t).expect(
				"resource "+tt.resource+"\nmetric m gauge 1\n1 @10 UUID=GPU-a "+tt.labels,
				tt.want+"\nmetric m gauge 1\n1 @10 UUID=GPU-a hw.id=GPU-a"+kept)
		})
	}
}

// One held device is enough to learn the exporter's name for the whole page.
func TestLearnsExporterFromThePage(t *testing.T) {
	start(t).expect(`
		resource service.name=x
		metric m gauge 1
		1 @10 UUID=GPU-a pod=exp namespace=mon container=main
		2 @10 UUID=GPU-b pod=exp namespace=mon container=main exported_pod=p exported_namespace=n exported_container=c`, `
		resource hw.id=GPU-a hw.type=gpu
		metric m gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu k8s.container.name=c k8s.namespace.name=n k8s.pod.name=p service.name=p
		metric m gauge 1
		2 @10 UUID=GPU-b hw.id=GPU-b`)
}

// What one page reports about its exporter does not apply to the next one's.
func TestEachPageHasItsOwnExporter(t *testing.T) {
	const page = "metric m gauge 1\n1 @10 UUID=%s namespace=mon pod=%s\n"
	const held = "resource hw.id=%[1]s hw.type=gpu k8s.namespace.name=mon k8s.pod.name=%[2]s service.name=%[2]s\n" +
		"metric m gauge 1\n1 @10 UUID=%[1]s hw.id=%[1]s\n"
	b := start(t)
	b.feed(parse("resource service.name=gpu-metrics k8s.pod.name=exp k8s.namespace.name=mon\n" + fmt.Sprintf(page, "GPU-z", "exp")))
	b.expect("resource service.name=x\n"+fmt.Sprintf(page, "GPU-a", "exp"), fmt.Sprintf(held, "GPU-a", "exp"))
	b.expect("resource service.name=x\n"+fmt.Sprintf(page, "GPU-b", "gpu-metrics-x2x9k"), fmt.Sprintf(held, "GPU-b", "gpu-metrics-x2x9k"))
}

// Free devices of a real cluster with a Prometheus that does not honour labels.
func TestRealSeriesWithoutHonoredLabels(t *testing.T) {
	md := pmetric.NewMetrics()
	for _, series := range vector(t, "aicr-gb200-nohonorlabels-2series.json") {
		addSeries(md, series)
	}
	b := start(t)
	out := b.feed(md)
	require.Equal(t, 2, out.ResourceMetrics().Len())
	for _, rm := range out.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		require.Contains(t, str(attrs, names.HwID), "GPU-")
		require.Equal(t, owner.Owner{}, owner.Of(attrs), "dcgm-exporter is no holder")
		point := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
		require.NotContains(t, point.AsRaw(), "pod")
		require.Equal(t, "NVIDIA GB200", str(point, "modelName"))
	}
}

// vector reads the series of a stored answer of the Prometheus API.
func vector(t *testing.T, file string) []map[string]string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for !exists(filepath.Join(dir, "go.mod")) {
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "..", "shared", "data", "prometheus_api", file)
	if !exists(path) {
		t.Skip("no stored answers of Prometheus here")
	}
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	var answer struct {
		Data struct {
			Result []struct{ Metric map[string]string }
		}
	}
	require.NoError(t, json.Unmarshal(body, &answer))
	var all []map[string]string
	for _, r := range answer.Data.Result {
		all = append(all, r.Metric)
	}
	require.NotEmpty(t, all)
	return all
}

// addSeries adds what the prometheus receiver makes of a series.
func addSeries(md pmetric.Metrics, labels map[string]string) {
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(names.ServiceName, labels["job"])
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(labels["__name__"])
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(10e9)
	for k, v := range labels {
		if k != "job" && k != "instance" && k != "__name__" {
			p.Attributes().PutStr(k, v)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
