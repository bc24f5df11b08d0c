// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpupods"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// The sources of expected pods.
const (
	expectedSeen       = "seen"
	expectedAllocation = "allocation"
	expectedKubernetes = "kubernetes"
)

// Config of the gpu_summary processor.
type Config struct {
	// Config is how to connect to the Kubernetes API, with ExpectedPods kubernetes. It
	// is validated by itself.
	k8sclient.Config `mapstructure:",squash"`

	// Interval is the time between two evaluations.
	Interval time.Duration `mapstructure:"interval"`

	// ExpectedPods is the source of the pods that should report: seen,
	// allocation or kubernetes.
	ExpectedPods string `mapstructure:"expected_pods"`

	// AllocationTTL is for how long a pod that gpu.allocation announced is
	// expected, and holds the device.
	AllocationTTL time.Duration `mapstructure:"allocation_ttl"`

	// ClusterName is k8s.cluster.name of the telemetry of the pods that the
	// Kubernetes API has; "" where it has none.
	ClusterName string `mapstructure:"cluster_name"`

	// Keys are which pods of the Kubernetes API ask for accelerators. They are checked
	// with ExpectedPods kubernetes.
	gpupods.Keys `mapstructure:",squash"`

	// UnobservedNodes are nodes on which no agent can run, such as virtual ones: names,
	// or their beginning followed by "*". Pods on them are not expected.
	UnobservedNodes []string `mapstructure:"unobserved_nodes"`

	// Staleness is the age up to which a point counts as fresh. 0 computes it for
	// each service: max(2.5 × interval between its points, 45s).
	Staleness time.Duration `mapstructure:"staleness"`

	// InitialInterval stands for the interval between a service's points until
	// three gaps have been seen.
	InitialInterval time.Duration `mapstructure:"initial_interval"`

	// Warmup is the age below which a pod is warming and never missing.
	Warmup time.Duration `mapstructure:"warmup"`

	// ReconnectGrace is for how long after its own start a pod of the Kubernetes
	// API, of which no agent reported yet, is warming and not missing: agents come
	// back to a gateway that was away one after the other.
	ReconnectGrace time.Duration `mapstructure:"reconnect_grace"`

	// PartialThreshold is the missing ratio above which a service is partial.
	PartialThreshold float64 `mapstructure:"partial_threshold"`

	// IdleThreshold is the utilization (0..1) below which a device is idle once
	// IdleFor has passed.
	IdleThreshold float64 `mapstructure:"idle_threshold"`

	// IdleFor is the time for which a device stays below IdleThreshold until it
	// counts as idle.
	IdleFor time.Duration `mapstructure:"idle_for"`

	// FirstUseThreshold is the utilization (0..1) from which on a device counts as used,
	// to measure how soon pods use theirs; with ExpectedPods kubernetes. 0 measures nothing.
	FirstUseThreshold float64 `mapstructure:"first_use_threshold"`

	// ServiceTTL is the time after which a pod that was not seen, and then a
	// service that has no pod, is forgotten.
	ServiceTTL time.Duration `mapstructure:"service_ttl"`

	// Storage is the storage extension that keeps the pods that were seen across
	// restarts; with ExpectedPods seen.
	Storage *component.ID `mapstructure:"storage"`

	// MaxPods limits the pods in memory.
	MaxPods int `mapstructure:"max_pods"`

	// MaxServices limits the services in memory.
	MaxServices int `mapstructure:"max_services"`
}

var _ confmap.Validator = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Config:           k8sclient.Config{AuthType: k8sclient.ServiceAccount},
		Interval:         15 * time.Second,
		ExpectedPods:     expectedSeen,
		AllocationTTL:    5 * time.Minute,
		Keys:             gpupods.DefaultKeys(),
		InitialInterval:  15 * time.Second,
		Warmup:           90 * time.Second,
		ReconnectGrace:   150 * time.Second,
		PartialThreshold: 0.25,
		IdleThreshold:    0.05,
		IdleFor:          15 * time.Minute,
		ServiceTTL:       10 * time.Minute,
		MaxPods:          200_000,
		MaxServices:      20_000,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate names every key that cannot work, with the remedy.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if c.Interval < time.Second {
		bad("interval must be at least 1s, got %s", c.Interval)
	}
	switch c.ExpectedPods {
	case expectedSeen, expectedAllocation:
	case expectedKubernetes:
		c.validateKubernetes(bad)
	default:
		bad("expected_pods must be %q, %q or %q, got %q", expectedKubernetes, expectedAllocation, expectedSeen, c.ExpectedPods)
	}
	if c.Storage != nil && c.ExpectedPods != expectedSeen {
		bad("storage is of use with expected_pods: %s alone, the other sources know their pods at once: remove it", expectedSeen)
	}
	if c.AllocationTTL <= 0 {
		bad("allocation_ttl must be positive, some intervals of gpu_allocation, got %s", c.AllocationTTL)
	}
	if c.Staleness < 0 {
		bad("staleness must be 0 (computed from the interval of the points) or positive, got %s", c.Staleness)
	}
	if c.InitialInterval <= 0 || c.InitialInterval > summary.Outage {
		bad("initial_interval must be above 0 and at most %s: set it to the collection interval, got %s", summary.Outage, c.InitialInterval)
	}
	if c.Warmup < 0 {
		bad("warmup must not be negative, got %s", c.Warmup)
	}
	if c.ReconnectGrace < 0 || c.ReconnectGrace > time.Hour {
		bad("reconnect_grace must be 0 to 1h, got %s: 150s outlasts the longest pause that gRPC makes between two attempts", c.ReconnectGrace)
	}
	// The comparisons are turned round so that NaN, which YAML can spell, fails them.
	if !(c.PartialThreshold >= 0 && c.PartialThreshold <= 1) {
		bad("partial_threshold must be a ratio from 0 to 1, got %v", c.PartialThreshold)
	}
	if !(c.IdleThreshold >= 0 && c.IdleThreshold <= 1) {
		bad("idle_threshold must be a ratio from 0 to 1 (0 finds no device idle), got %v", c.IdleThreshold)
	}
	if !(c.FirstUseThreshold >= 0 && c.FirstUseThreshold <= 1) {
		bad("first_use_threshold must be a ratio from 0 to 1 (0 measures nothing), got %v", c.FirstUseThreshold)
	}
	if c.FirstUseThreshold > 0 && c.ExpectedPods != expectedKubernetes {
		bad("first_use_threshold is %v, and when a pod started is known with expected_pods: %s alone: set that, or remove it", c.FirstUseThreshold, expectedKubernetes)
	}
	if c.IdleFor <= 0 {
		bad("idle_for must be positive, got %s", c.IdleFor)
	}
	// A pod that is forgotten before it can be settled and missing would never be
	// missing at all.
	sum := c.summary()
	if least := max(c.Warmup, sum.StalenessAt(c.InitialInterval)); c.ServiceTTL <= least {
		bad("service_ttl must be above %s, which is the larger of warmup and staleness: raise it, got %s", least, c.ServiceTTL)
	}
	if c.MaxPods < 1 {
		bad("max_pods must be at least 1, got %d", c.MaxPods)
	}
	if c.MaxServices < 1 {
		bad("max_services must be at least 1, got %d", c.MaxServices)
	}
	return errors.Join(errs...)
}

func (c *Config) validateKubernetes(bad func(string, ...any)) {
	if c.AuthType == k8sclient.None {
		bad("expected_pods: %s needs the Kubernetes API: set auth_type, or expected_pods to %q", expectedKubernetes, expectedAllocation)
	}
	c.Check(bad)
	for i, node := range c.UnobservedNodes {
		if len(validation.IsDNS1123Subdomain(strings.TrimSuffix(node, "*")+"0")) > 0 || node == "*" {
			bad("unobserved_nodes::%d: %q is no name of a node, nor the beginning of one followed by *: write it as kubectl get nodes does", i, node)
		}
	}
}

var sources = map[string]summary.Source{
	expectedSeen: summary.Seen, expectedAllocation: summary.Allocation, expectedKubernetes: summary.Kubernetes,
}

// lapse is for how long this process is away at most until points that were fresh go stale.
func (c *Config) lapse() time.Duration {
	sum := c.summary()
	return max(sum.StalenessAt(c.InitialInterval)-c.InitialInterval, c.Interval*3/2)
}

// summary is the configuration of the summary.
func (c *Config) summary() summary.Config {
	return summary.Config{
		Expected:         sources[c.ExpectedPods],
		AllocationTTL:    c.AllocationTTL,
		Staleness:        c.Staleness,
		InitialInterval:  c.InitialInterval,
		Warmup:           c.Warmup,
		ReconnectGrace:   c.ReconnectGrace,
		ServiceTTL:       c.ServiceTTL,
		PartialThreshold: c.PartialThreshold,
		IdleThreshold:    c.IdleThreshold,
		IdleFor:          c.IdleFor,
		MaxPods:          c.MaxPods,
		MaxServices:      c.MaxServices,
	}
}
