// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// expectedSeen is the source of expected pods that needs nothing but telemetry:
// the pods that were heard of within service_ttl.
const expectedSeen = "seen"

// Config of the gpu_summary processor.
type Config struct {
	// Interval is the time between two evaluations.
	Interval time.Duration `mapstructure:"interval"`

	// ExpectedPods says where the pods that should report are known from. "seen"
	// is the only value of this version.
	ExpectedPods string `mapstructure:"expected_pods"`

	// Staleness is the age up to which a point counts as fresh. 0 computes it for
	// each service: max(2.5 × interval between its points, 45s).
	Staleness time.Duration `mapstructure:"staleness"`

	// InitialInterval stands for the interval between a service's points until
	// three gaps have been seen.
	InitialInterval time.Duration `mapstructure:"initial_interval"`

	// Warmup is the age below which a pod is warming and never missing.
	Warmup time.Duration `mapstructure:"warmup"`

	// PartialThreshold is the missing ratio above which a service is partial.
	PartialThreshold float64 `mapstructure:"partial_threshold"`

	// IdleThreshold is the utilization (0..1) below which a device is idle once
	// IdleFor has passed.
	IdleThreshold float64 `mapstructure:"idle_threshold"`

	// IdleFor is the time for which a device stays below IdleThreshold until it
	// counts as idle.
	IdleFor time.Duration `mapstructure:"idle_for"`

	// ServiceTTL is the time after which a pod that was not heard of, and then a
	// service that has no pod, is forgotten.
	ServiceTTL time.Duration `mapstructure:"service_ttl"`

	// MaxPods limits the pods in memory.
	MaxPods int `mapstructure:"max_pods"`

	// MaxServices limits the services in memory.
	MaxServices int `mapstructure:"max_services"`
}

var _ confmap.Validator = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Interval:         15 * time.Second,
		ExpectedPods:     expectedSeen,
		InitialInterval:  15 * time.Second,
		Warmup:           90 * time.Second,
		PartialThreshold: 0.25,
		IdleThreshold:    0.05,
		IdleFor:          15 * time.Minute,
		ServiceTTL:       10 * time.Minute,
		MaxPods:          200_000,
		MaxServices:      20_000,
	}
}

// Validate names every key that cannot work, with the remedy.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if c.Interval < time.Second {
		bad("interval must be at least 1s, got %s", c.Interval)
	}
	switch c.ExpectedPods {
	case expectedSeen:
	case "kubernetes", "allocation":
		bad("expected_pods: %s is not in this version: use %q, which expects the pods seen within service_ttl", c.ExpectedPods, expectedSeen)
	default:
		bad("expected_pods must be %q, got %q", expectedSeen, c.ExpectedPods)
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
	// The comparisons are turned round so that NaN, which YAML can spell, fails them.
	if !(c.PartialThreshold >= 0 && c.PartialThreshold <= 1) {
		bad("partial_threshold must be a ratio from 0 to 1, got %v", c.PartialThreshold)
	}
	if !(c.IdleThreshold >= 0 && c.IdleThreshold <= 1) {
		bad("idle_threshold must be a ratio from 0 to 1 (0 finds no device idle), got %v", c.IdleThreshold)
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

// summary is the part of the configuration that says how to sum up.
func (c *Config) summary() summary.Config {
	return summary.Config{
		Staleness:        c.Staleness,
		InitialInterval:  c.InitialInterval,
		Warmup:           c.Warmup,
		ServiceTTL:       c.ServiceTTL,
		PartialThreshold: c.PartialThreshold,
		IdleThreshold:    c.IdleThreshold,
		IdleFor:          c.IdleFor,
		MaxPods:          c.MaxPods,
		MaxServices:      c.MaxServices,
	}
}
