// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gputrainingprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gputrainingprocessor/internal/training"
)

// Config of the gpu_training processor.
type Config struct {
	// Interval is the time between two evaluations.
	Interval time.Duration `mapstructure:"interval"`

	// Window is the least time that figures are over. It is longer for a run whose steps or
	// exports are far apart.
	Window time.Duration `mapstructure:"window"`

	// Models are peaks of devices that are not known, or other ones.
	Models []Model `mapstructure:"models"`

	// FP8Peak is the precision of the peak that runs in fp8 are measured against, bf16 or fp8; ""
	// measures none.
	FP8Peak string `mapstructure:"fp8_peak"`

	// RunTTL is the time without a point after which a run is forgotten.
	RunTTL time.Duration `mapstructure:"run_ttl"`

	// MaxRuns limits the runs in memory.
	MaxRuns int `mapstructure:"max_runs"`

	// MaxDevices limits the devices in memory.
	MaxDevices int `mapstructure:"max_devices"`
}

// Model is the peaks of a device.
type Model struct {
	// Model is hw.model, as the exporter writes it.
	Model string `mapstructure:"model"`

	// TFLOPS are dense peaks in 10^12 operations a second, by precision.
	TFLOPS map[string]float64 `mapstructure:"tflops"`

	// Source is where they are from.
	Source string `mapstructure:"source"`
}

var _ confmap.Validator = (*Config)(nil)

var precisions = []gpuspecs.Precision{gpuspecs.BF16, gpuspecs.FP16, gpuspecs.TF32, gpuspecs.FP32, gpuspecs.FP8}

func createDefaultConfig() component.Config {
	return &Config{
		Interval:   15 * time.Second,
		Window:     2 * time.Minute,
		RunTTL:     10 * time.Minute,
		MaxRuns:    5000,
		MaxDevices: 100_000,
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
	if c.Window < 10*time.Second || c.Window > time.Hour {
		bad("window must be from 10s to 1h, got %s", c.Window)
	}
	switch gpuspecs.Precision(c.FP8Peak) {
	case "", gpuspecs.BF16, gpuspecs.FP8:
	default:
		bad("fp8_peak must be %q, %q or empty, which measures no run in fp8, got %q", gpuspecs.BF16, gpuspecs.FP8, c.FP8Peak)
	}
	if c.RunTTL < c.Window {
		bad("run_ttl must be at least window, %s, got %s", c.Window, c.RunTTL)
	}
	if c.MaxRuns < 1 {
		bad("max_runs must be at least 1, got %d", c.MaxRuns)
	}
	if c.MaxDevices < 1 {
		bad("max_devices must be at least 1, got %d", c.MaxDevices)
	}
	for i, m := range c.Models {
		if m.Model == "" {
			bad("models::%d::model is empty: write hw.model as the exporter does", i)
		}
		if m.Source == "" {
			bad("models::%d::source is empty: write where the peaks are from, so that others can check them", i)
		}
		if len(m.TFLOPS) == 0 {
			bad("models::%d::tflops is empty: write the dense peak of at least one precision, such as bf16: 989", i)
		}
		for _, p := range slices.Sorted(maps.Keys(m.TFLOPS)) {
			if !slices.Contains(precisions, gpuspecs.Precision(p)) {
				bad("models::%d::tflops::%s is no precision: one of %v", i, p, precisions)
			}
			// Turned round so that NaN, which YAML can spell, fails it.
			if v := m.TFLOPS[p]; !(v > 0 && v < 1e6) {
				bad("models::%d::tflops::%s must be above 0 and below 1000000, in 10^12 operations a second, got %v", i, p, v)
			}
		}
	}
	return errors.Join(errs...)
}

// training is the configuration of the state.
func (c *Config) training() training.Config {
	own := map[string]gpuspecs.Spec{}
	for _, m := range c.Models {
		spec := gpuspecs.Spec{Name: m.Model, TFLOPS: map[gpuspecs.Precision]float64{}, Source: m.Source}
		for p, v := range m.TFLOPS {
			spec.TFLOPS[gpuspecs.Precision(p)] = v
		}
		own[strings.TrimSpace(m.Model)] = spec
	}
	return training.Config{
		Window: c.Window, RunTTL: c.RunTTL, MaxRuns: c.MaxRuns, MaxDevices: c.MaxDevices, FP8Peak: gpuspecs.Precision(c.FP8Peak),
		Lookup: func(model string) (gpuspecs.Spec, bool) {
			if spec, ok := own[strings.TrimSpace(model)]; ok {
				return spec, true
			}
			return gpuspecs.Lookup(model)
		},
	}
}
