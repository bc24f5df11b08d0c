// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// UsualFolder is where images, packages and the chart put configurations.
const UsualFolder = "/etc/otelcol-gpu"

// UsualFiles are the configurations in the usual folder, in the order in which
// the chart merges them: its values and the user's own come last.
func UsualFiles(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	rank := func(file string) string {
		switch name := strings.TrimSuffix(filepath.Base(file), ".yaml"); name {
		case "values":
			return "1"
		case "custom":
			return "2"
		default:
			return "0" + name // agent before agent-raw
		}
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(rank(a), rank(b)) })
	return files, nil
}

// BasesOf is how many of the files are configurations of their own; the others
// are merged onto one. An image has them all.
func BasesOf(files []string) int {
	n := 0
	for _, file := range files {
		if slices.Contains([]string{"agent.yaml", "gateway.yaml", "raw-gateway.yaml", "standalone.yaml"}, filepath.Base(file)) {
			n++
		}
	}
	return n
}

// Assumed is what there is without any configuration: one machine with
// config/standalone.yaml on its usual ports.
func Assumed() *Configuration {
	exporter := os.Getenv("DCGM_EXPORTER_ENDPOINT")
	if exporter == "" {
		exporter = "http://localhost:9400/metrics"
	}
	type m = map[string]any
	return New(confmap.NewFromStringMap(m{
		"receivers": m{
			"dcgm":           m{"endpoints": []any{exporter}},
			"gpu_allocation": m{"optional": true},
			"otlp":           m{"protocols": m{"grpc": m{"endpoint": "localhost:4317"}}},
		},
		"processors": m{"gpu_pod": m{}, "gpu_summary": m{"expected_pods": "seen"}},
		"extensions": m{"health_check": m{"endpoint": "localhost:13133"}, "gpu_console": m{"endpoint": "localhost:8480"}},
		"service": m{
			"extensions": []any{"health_check", "gpu_console"},
			"telemetry": m{"metrics": m{"readers": []any{
				m{"pull": m{"exporter": m{"prometheus": m{"host": "localhost", "port": 8888}}}},
			}}},
			"pipelines": m{"metrics": m{"receivers": []any{"dcgm", "gpu_allocation", "otlp"}, "processors": []any{"gpu_pod", "gpu_summary"}}},
		},
	}))
}
