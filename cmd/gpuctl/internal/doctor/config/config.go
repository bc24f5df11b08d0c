// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package config reads a collector's configuration as the collector itself does, and
// the keys of it that the probes need.
package config

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
)

// Configuration is the collector's, with its files merged and its variables
// expanded as the collector itself does it.
type Configuration struct {
	conf *confmap.Conf
	used map[string]bool // "receivers/dcgm": in a pipeline or among the extensions
}

// Component is one that the service uses.
type Component struct {
	ID   string
	Conf *confmap.Conf
}

// Load merges the configurations. An error names what cannot be read.
func Load(ctx context.Context, uris []string) (*Configuration, error) {
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
	return New(conf), resolver.Shutdown(ctx)
}

// New takes a configuration that is merged and expanded.
func New(conf *confmap.Conf) *Configuration {
	c := &Configuration{conf: conf, used: map[string]bool{}}
	service := MapOf(conf.Get("service"))
	for _, id := range listOf(service["extensions"]) {
		c.used["extensions/"+id] = true
	}
	for _, pipeline := range MapOf(service["pipelines"]) {
		for _, kind := range []string{"receivers", "processors", "exporters"} {
			for _, id := range listOf(MapOf(pipeline)[kind]) {
				c.used[kind+"/"+id] = true
				c.used["connectors/"+id] = true
			}
		}
	}
	return c
}

// Of returns the components of these types that the service uses, by their ids.
func (c *Configuration) Of(kind string, types ...string) []Component {
	var all []Component
	for id := range MapOf(c.conf.Get(kind)) {
		name, _, _ := strings.Cut(id, "/")
		if !c.used[kind+"/"+id] || !slices.Contains(types, name) {
			continue
		}
		sub, err := c.conf.Sub(kind + confmap.KeyDelimiter + id)
		if err != nil {
			sub = confmap.New() // the collector refuses it at its start
		}
		all = append(all, Component{id, sub})
	}
	slices.SortFunc(all, func(a, b Component) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Unused returns the ids of components of a type that are defined, and that the
// service does not use.
func (c *Configuration) Unused(kind, of string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(MapOf(c.conf.Get(kind)))), func(id string) bool {
		name, _, _ := strings.Cut(id, "/")
		return name != of || c.used[kind+"/"+id]
	})
}

// Extension returns an extension by its id, whether the service uses it or not.
func (c *Configuration) Extension(id string) (*confmap.Conf, bool) {
	if _, there := MapOf(c.conf.Get("extensions"))[id]; !there {
		return nil, false
	}
	sub, err := c.conf.Sub("extensions" + confmap.KeyDelimiter + id)
	return sub, err == nil
}

// Read reads those keys that into has.
func (c Component) Read(into any) error {
	if c.Conf.Unmarshal(into, confmap.WithIgnoreUnused()) != nil {
		// The error may quote a value, which may be a secret.
		return fmt.Errorf("the configuration of %s is not understood", c.ID)
	}
	return nil
}

// MapOf is a mapping of YAML, and nil for anything else.
func MapOf(v any) map[string]any {
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

// Near is the address under which a listener is reached from here.
func Near(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
