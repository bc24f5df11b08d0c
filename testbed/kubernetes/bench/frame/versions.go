// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// peers are what otelcol-gpu is measured beside, and the files with their versions
// version of it is built.
var peers = []struct{ name, file, module string }{
	{"Collector", "builder-config.yaml", "go.opentelemetry.io/collector/receiver/otlpreceiver"},
	{"Collector contrib", "builder-config.yaml", "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"},
	{"Prometheus", "testbed/go.mod", "github.com/prometheus/prometheus"},
	{"Alertmanager", "testbed/go.mod", "github.com/prometheus/alertmanager"},
	{"Kubernetes", "testbed/kubernetes/go.mod", "k8s.io/kubernetes"},
}

// Versions reads them.
func Versions(root string) (map[string]string, error) {
	all := map[string]string{}
	for _, p := range peers {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p.file)))
		if err != nil {
			return nil, err
		}
		found := regexp.MustCompile(regexp.QuoteMeta(p.module) + ` (v[0-9][^\s]*)`).FindSubmatch(text)
		if found == nil {
			return nil, fmt.Errorf("%s has no version of %s", p.file, p.module)
		}
		all[p.name] = string(found[1])
	}
	return all, nil
}
