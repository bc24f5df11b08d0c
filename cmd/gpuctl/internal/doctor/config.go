// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
)

// usualConfigs is where images, packages and the chart put configurations.
const usualConfigs = "/etc/otelcol-gpu"

// configuration is the collector's, with its files merged and its variables
// expanded as the collector itself does it.
type configuration struct {
	conf *confmap.Conf
	used map[string]bool // "receivers/dcgm": in a pipeline or among the extensions
}

// component is one that the service uses.
type component struct {
	id   string
	conf *confmap.Conf
}

// load merges the configurations. An error names what cannot be read.
func load(ctx context.Context, uris []string) (*configuration, error) {
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              uris,
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory()},
		DefaultScheme:     "env",
	})
	if err != nil {
		return nil, err
	}
	conf, err := resolver.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	return newConfiguration(conf), resolver.Shutdown(ctx)
}

func newConfiguration(conf *confmap.Conf) *configuration {
	c := &configuration{conf: conf, used: map[string]bool{}}
	service := mapOf(conf.Get("service"))
	for _, id := range listOf(service["extensions"]) {
		c.used["extensions/"+id] = true
	}
	for _, pipeline := range mapOf(service["pipelines"]) {
		for _, kind := range []string{"receivers", "processors", "exporters"} {
			for _, id := range listOf(mapOf(pipeline)[kind]) {
				c.used[kind+"/"+id] = true
				c.used["connectors/"+id] = true
			}
		}
	}
	return c
}

// of returns the components of these types that the service uses, by their ids.
func (c *configuration) of(kind string, types ...string) []component {
	var all []component
	for id := range mapOf(c.conf.Get(kind)) {
		name, _, _ := strings.Cut(id, "/")
		if !c.used[kind+"/"+id] || !slices.Contains(types, name) {
			continue
		}
		sub, err := c.conf.Sub(kind + confmap.KeyDelimiter + id)
		if err != nil {
			sub = confmap.New() // the collector says so at its start
		}
		all = append(all, component{id, sub})
	}
	slices.SortFunc(all, func(a, b component) int { return strings.Compare(a.id, b.id) })
	return all
}

// unused returns the ids of components of a type that are defined, and that the
// service does not use.
func (c *configuration) unused(kind, of string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(mapOf(c.conf.Get(kind)))), func(id string) bool {
		name, _, _ := strings.Cut(id, "/")
		return name != of || c.used[kind+"/"+id]
	})
}

// extension returns an extension by its id, whether the service uses it or not.
func (c *configuration) extension(id string) (*confmap.Conf, bool) {
	if _, there := mapOf(c.conf.Get("extensions"))[id]; !there {
		return nil, false
	}
	sub, err := c.conf.Sub("extensions" + confmap.KeyDelimiter + id)
	return sub, err == nil
}

// read reads those keys that into has.
func (c component) read(into any) error {
	if c.conf.Unmarshal(into, confmap.WithIgnoreUnused()) != nil {
		// The error may quote a value, which may be a secret.
		return fmt.Errorf("the configuration of %s is not understood", c.id)
	}
	return nil
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func listOf(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, one := range list {
		if s, ok := one.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

// usualFiles are the configurations in the usual folder, in the order in which
// the chart merges them: its values and the user's own come last.
func usualFiles(folder string) ([]string, error) {
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

// basesOf is how many of the files are configurations of their own; the others
// go over one. An image has them all.
func basesOf(files []string) int {
	n := 0
	for _, file := range files {
		if slices.Contains([]string{"agent.yaml", "gateway.yaml", "raw-gateway.yaml", "standalone.yaml"}, filepath.Base(file)) {
			n++
		}
	}
	return n
}

// assumed is what there is without any configuration: one machine with
// config/standalone.yaml on its usual ports.
func assumed() *configuration {
	exporter := os.Getenv("DCGM_EXPORTER_ENDPOINT")
	if exporter == "" {
		exporter = "http://localhost:9400/metrics"
	}
	type m = map[string]any
	return newConfiguration(confmap.NewFromStringMap(m{
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

// near is the address under which a listener is reached from here.
func near(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
