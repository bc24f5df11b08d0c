// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Names chooses the names under which metrics leave a receiver: NamesOTel, NamesBoth
// or the Exporter's own OwnNames.
type Names string

const (
	// NamesOTel emits OpenTelemetry names.
	NamesOTel Names = "otel"
	// NamesExporter emits the exporter's own; the dcgm receiver has another word for it.
	NamesExporter Names = "exporter"
	// NamesBoth emits both, for a migration.
	NamesBoth Names = "both"
)

// Unmapped is what becomes of families that the field table does not know.
type Unmapped string

const (
	// UnmappedKeep passes them on under names with the vendor's prefix.
	UnmappedKeep Unmapped = "keep"
	// UnmappedDrop drops and counts them.
	UnmappedDrop Unmapped = "drop"
)

const (
	minInterval = time.Second
	maxInterval = 5 * time.Minute
	// What dcgm-exporter itself prints of a GPU that a pod owns.
	minLabels     = 32
	minLabelBytes = 256
)

// Config has the keys that the receivers of all vendors share. One of Endpoints and
// Kubernetes is required.
type Config struct {
	// Endpoints are the exporters' URLs, http://host:9400/metrics.
	Endpoints []string `mapstructure:"endpoints"`

	// Kubernetes finds the exporter's pod on this node.
	Kubernetes *KubernetesConfig `mapstructure:"kubernetes"`

	// CollectionInterval is the time between two scrapes, 1s to 5m.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// Names is otel, the exporter's own or both.
	Names Names `mapstructure:"names"`

	// Unmapped is keep or drop.
	Unmapped Unmapped `mapstructure:"unmapped"`

	// FrozenAfter is the number of scrapes for which energy and clocks of all
	// devices must stand still until gpu.exporter.frozen is 1.
	FrozenAfter int `mapstructure:"frozen_after"`

	// ExporterInterval is how often the exporter itself reads its devices. Values that
	// stand still for less than two of these intervals are not frozen.
	ExporterInterval time.Duration `mapstructure:"exporter_interval"`

	// NodeName and ClusterName become k8s.node.name and k8s.cluster.name.
	// Kubernetes discovery knows the node's name by itself.
	NodeName    string `mapstructure:"node_name"`
	ClusterName string `mapstructure:"cluster_name"`

	// MaxLabels is how many labels a sample may have, and MaxLabelBytes how long
	// each of their names and values may be. A sample over one of them is left out
	// and counted.
	MaxLabels     int `mapstructure:"max_labels"`
	MaxLabelBytes int `mapstructure:"max_label_bytes"`

	// Scrape takes the keys of Prometheus' scrape_configs for TLS, authentication,
	// relabelling and limits.
	Scrape PrometheusConfig `mapstructure:"scrape"`
}

// Defaults are the settings of a receiver that scrapes at an interval, of an exporter
// that reads its devices at another.
func Defaults(interval, exporterInterval time.Duration) Config {
	return Config{
		CollectionInterval: interval,
		Names:              NamesOTel,
		Unmapped:           UnmappedKeep,
		FrozenAfter:        5,
		ExporterInterval:   exporterInterval,
		MaxLabels:          fetch.DefaultMaxLabels,
		MaxLabelBytes:      fetch.DefaultMaxLabelBytes,
	}
}

// Check reports every problem with its key and remedy.
func (c *Config) Check(e *Exporter) error {
	var errs []error
	switch {
	case e.Local != nil: // the receiver has its own keys
	case len(c.Endpoints) == 0 && c.Kubernetes == nil:
		errs = append(errs, fmt.Errorf("endpoints: is empty and kubernetes is not set: name the exporter (http://localhost:%d/metrics) or set kubernetes::node_name", e.Port))
	case len(c.Endpoints) > 0 && c.Kubernetes != nil:
		errs = append(errs, fmt.Errorf("endpoints: is set beside kubernetes: keep one, or use two receivers (%[1]s/a, %[1]s/b)", e.Type))
	}
	seen := map[string]bool{}
	for i, endpoint := range c.Endpoints {
		if err := validateEndpoint(endpoint, e.Port); err != nil {
			errs = append(errs, fmt.Errorf("endpoints::%d: %w", i, err))
			continue
		}
		page := samePage(endpoint)
		if seen[page] {
			errs = append(errs, fmt.Errorf("endpoints::%d: repeats an earlier endpoint: remove it", i))
		}
		seen[page] = true
	}
	if c.Kubernetes != nil {
		errs = append(errs, c.Kubernetes.check())
	}
	if least := max(minInterval, e.MinInterval); c.CollectionInterval < least || c.CollectionInterval > maxInterval {
		errs = append(errs, fmt.Errorf("collection_interval: is %v: use %v to %v", c.CollectionInterval, least, maxInterval))
	}
	switch c.Names {
	case NamesOTel, e.OwnNames, NamesBoth:
	default:
		errs = append(errs, fmt.Errorf("names: is %q: use otel, %s or both", c.Names, e.OwnNames))
	}
	switch c.Unmapped {
	case UnmappedKeep, UnmappedDrop:
	default:
		errs = append(errs, fmt.Errorf("unmapped: is %q: use keep or drop", c.Unmapped))
	}
	if c.FrozenAfter < 2 {
		errs = append(errs, fmt.Errorf("frozen_after: is %d: use 2 or more scrapes", c.FrozenAfter))
	}
	if c.ExporterInterval <= 0 {
		errs = append(errs, fmt.Errorf("exporter_interval: is %v: use %s, such as 30s", c.ExporterInterval, e.IntervalOption))
	}
	if c.MaxLabels < minLabels {
		errs = append(errs, fmt.Errorf("max_labels: is %d: use %d or more", c.MaxLabels, minLabels))
	}
	if c.MaxLabelBytes < minLabelBytes {
		errs = append(errs, fmt.Errorf("max_label_bytes: is %d: use %d or more", c.MaxLabelBytes, minLabelBytes))
	}
	if errors.Join(errs...) == nil {
		if _, err := c.Prometheus(e); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// samePage is the endpoint with its defaults written out.
func samePage(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil { // validateEndpoint has refused it
		return endpoint
	}
	host, port := hostPort(u)
	return fmt.Sprintf("%s://%s:%d%s?%s", u.Scheme, strings.ToLower(host), port, fetch.PagePath(u), u.Query().Encode())
}

// validateEndpoint never quotes the endpoint: it may hold a password.
func validateEndpoint(endpoint string, exporterPort int) error {
	use := fmt.Sprintf("use http://host:%d/metrics", exporterPort)
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return errors.New("is empty: " + use + ", or set the environment variable that it is taken from: " +
			"DCGM_EXPORTER_ENDPOINT in config/standalone.yaml, DCGM_PAGE_URL in config/bring-your-own-prometheus.yaml")
	case err != nil:
		return errors.New("is no URL: " + use)
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("has no scheme http or https: " + use)
	case u.Hostname() == "":
		return errors.New("has no host: " + use)
	case u.User != nil:
		return errors.New("has a user or password in it: use scrape::basic_auth")
	case u.Fragment != "":
		return errors.New("has a fragment (#): remove it")
	}
	return nil
}
