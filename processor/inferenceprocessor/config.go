// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package inferenceprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"
)

// Values of Config.Names and Config.Unmapped.
const (
	namesNormalised = "normalised"
	namesRaw        = "raw"
	namesBoth       = "both"

	unmappedKeep = "keep"
	unmappedDrop = "drop"
)

// Config of the inference processor.
type Config struct {
	// Names is under which names the known families pass: normalised, raw (as they
	// came), or both.
	Names string `mapstructure:"names"`
	// Unmapped is what becomes of families that are on no row of the table, where names
	// is normalised: keep or drop.
	Unmapped string `mapstructure:"unmapped"`
	// Engines switches engines off, by the value of inference.engine.
	Engines map[string]EngineConfig `mapstructure:"engines"`
	// HistogramBounds is how many bounds a histogram keeps at most.
	HistogramBounds int `mapstructure:"histogram_bounds"`
	// MaxSeries is how many counters and histograms are remembered. What is beyond
	// passes as it came.
	MaxSeries int `mapstructure:"max_series"`
	// MaxModels is how many models a page may name.
	MaxModels int `mapstructure:"max_models"`
	// LoraNames are LoRA adapters that have a series of their own.
	LoraNames []string `mapstructure:"lora_names"`
	// ModelsExclude are models without normalised series, such as tokenizers and
	// ensembles.
	ModelsExclude []string `mapstructure:"models_exclude"`
	// Attributes are further labels of the page that normalised points keep.
	Attributes []string `mapstructure:"attributes"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// EngineConfig is what can be set for one engine.
type EngineConfig struct {
	// Enabled is whether its families are translated; they are if it is not set.
	Enabled *bool `mapstructure:"enabled"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Names: namesNormalised, Unmapped: unmappedKeep, HistogramBounds: 64, MaxSeries: 100_000, MaxModels: 100,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist stops the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	oneOf := func(key, value string, values ...string) {
		if !slices.Contains(values, value) {
			errs = append(errs, fmt.Errorf("%s: %q: use one of %s", key, value, strings.Join(values, ", ")))
		}
	}
	oneOf("names", c.Names, namesNormalised, namesRaw, namesBoth)
	oneOf("unmapped", c.Unmapped, unmappedKeep, unmappedDrop)
	for _, name := range slices.Sorted(maps.Keys(c.Engines)) {
		if _, ok := families.ByName(name); !ok {
			errs = append(errs, fmt.Errorf("engines::%s: no such engine: use one of %s", name, strings.Join(engineNames(), ", ")))
		}
	}
	for _, limit := range []struct {
		key                   string
		value, least, most, d int
	}{
		{"histogram_bounds", c.HistogramBounds, 1, 4096, 64},
		{"max_series", c.MaxSeries, 1, 10_000_000, 100_000},
		{"max_models", c.MaxModels, 1, 100_000, 100},
	} {
		if limit.value < limit.least || limit.value > limit.most {
			errs = append(errs, fmt.Errorf("%s: %d: set it between %d and %d; the default is %d", limit.key, limit.value, limit.least, limit.most, limit.d))
		}
	}
	for i, key := range c.Attributes {
		for _, prefix := range []string{"k8s.", "k8s_", "service.", "service_", "host.", "host_", "hw.", "hw_", "gpu.", "gpu_", "inference.", "inference_", "gen_ai.", "gen_ai_"} {
			if key == "" || strings.HasPrefix(key, prefix) {
				errs = append(errs, fmt.Errorf("attributes::%d: %q would name a resource or be taken for an attribute of this processor: remove it", i, key))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// engineNames are all values of inference.engine.
func engineNames() []string {
	var list []string
	for _, e := range families.Engines() {
		list = append(list, e.Name)
	}
	return list
}

// engines are those that are switched on.
func (c *Config) engines() []*families.Engine {
	var list []*families.Engine
	for _, e := range families.Engines() {
		if enabled := c.Engines[e.Name].Enabled; enabled == nil || *enabled {
			list = append(list, e)
		}
	}
	return list
}
