// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

// CarbonConfig is how much carbon dioxide electricity causes.
type CarbonConfig struct {
	// PUE is the power usage effectiveness of the data centre: all its energy by that of
	// its computers.
	PUE       float64           `mapstructure:"pue"`
	Intensity []IntensityConfig `mapstructure:"intensity"`
	// FromMetric is a gauge that another receiver brings. Where it reports a region, it is
	// preferred to the table.
	FromMetric *FromMetricConfig `mapstructure:"from_metric"`
}

// FromMetricConfig is a gauge of the intensity, in grams of CO2e per kilowatt-hour.
type FromMetricConfig struct {
	Metric    string `mapstructure:"metric"`
	Attribute string `mapstructure:"attribute"` // that has the region; cloud.region by default
	Kind      string `mapstructure:"kind"`
}

// IntensityConfig is the intensity of the grids of some regions, by location.
type IntensityConfig struct {
	Region      string  `mapstructure:"region"` // a pattern
	GramsPerKWh float64 `mapstructure:"grams_per_kwh"`
	Kind        string  `mapstructure:"kind"`
	ValidFrom   string  `mapstructure:"valid_from"`
	Source      string  `mapstructure:"source"`
}

// Kinds of intensity.
const (
	Average  = "average"
	Marginal = "marginal"
)

// maxGrams is above the intensity of the dirtiest grid, and below what a mistake in the
// unit gives: 1,000 lb/MWh are 454 g/kWh.
const maxGrams = 3000

// Carbon is the intensities of a configuration.
type Carbon struct {
	pue    float64
	tables []intensity
	from   FromMetricConfig
	gauge  gauge
}

type intensity struct {
	region, kind, source string
	grams                float64
	from                 time.Time
}

// NewCarbon returns the table of a configuration, or every mistake in it with its key and
// remedy.
func NewCarbon(c CarbonConfig) (*Carbon, error) {
	var errs []error
	if !(c.PUE >= 1 && c.PUE <= 3) {
		errs = append(errs, fmt.Errorf("carbon::pue: %v: set it to all energy of the data centre by that of its computers, 1 to 3; 1 counts the GPUs alone", c.PUE))
	}
	t := &Carbon{pue: c.PUE, gauge: gauge{}}
	if c.FromMetric != nil {
		t.from = *c.FromMetric
		t.from.Attribute = cmp.Or(t.from.Attribute, MatchRegion)
		if t.from.Metric == "" {
			errs = append(errs, errors.New("carbon::from_metric::metric: is empty: write the name of a gauge of grams of CO2e per kilowatt-hour"))
		}
		if t.from.Kind != Average && t.from.Kind != Marginal {
			errs = append(errs, fmt.Errorf("carbon::from_metric::kind: %q: use %s or %s, which every report shows", t.from.Kind, Average, Marginal))
		}
	}
	for i, row := range c.Intensity {
		refuse := func(key, format string, args ...any) {
			errs = append(errs, fmt.Errorf("carbon::intensity::%d::%s: %s", i, key, fmt.Sprintf(format, args...)))
		}
		if _, err := path.Match(row.Region, ""); err != nil || row.Region == "" {
			refuse("region", "%q is no pattern: write a region, \"*\" for all", row.Region)
		}
		if !(row.GramsPerKWh >= 0 && row.GramsPerKWh <= maxGrams) {
			refuse("grams_per_kwh", "%v: write grams of CO2e per kilowatt-hour, 0 to %d; lb/MWh are multiplied by 0.453592", row.GramsPerKWh, maxGrams)
		}
		if row.Kind != Average && row.Kind != Marginal {
			refuse("kind", "%q: use %s or %s, which every report shows", row.Kind, Average, Marginal)
		}
		from, err := parseFrom(row.ValidFrom)
		if err != nil {
			refuse("valid_from", "%v", err)
		}
		for _, other := range t.tables {
			if other.region == row.Region && !other.from.Before(from) {
				refuse("valid_from", "%s is not after that of the earlier row of %s: order them by date, the oldest first, each once", from.Format(time.DateOnly), row.Region)
				break
			}
		}
		t.tables = append(t.tables, intensity{row.Region, row.Kind, row.Source, row.GramsPerKWh, from})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// At returns the milligrams of carbon dioxide for a kilowatt-hour of GPUs in a region, the
// overhead of the data centre included, and the kind of the intensity. ok is false where
// no intensity is known.
func (c *Carbon) At(region string, at time.Time) (milligrams int64, kind string, ok bool) {
	if region == "" {
		return 0, "", false
	}
	if mg, _, _, known := c.gauge.at(region, at); known {
		return int64(float64(mg)*c.pue + 0.5), c.from.Kind, true
	}
	first := slices.IndexFunc(c.tables, func(t intensity) bool { return glob(t.region, region) })
	if first < 0 {
		return 0, "", false
	}
	var found *intensity
	for i := range c.tables {
		if t := &c.tables[i]; t.region == c.tables[first].region && !t.from.After(at) {
			found = t
		}
	}
	if found == nil {
		return 0, "", false
	}
	return int64(found.grams*c.pue*1000 + 0.5), found.kind, true
}
