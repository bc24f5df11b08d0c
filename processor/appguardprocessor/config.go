// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/reserved"
)

const (
	defaultMaxSeries          = 50_000
	defaultMaxSeriesPerSender = 10_000
	defaultMaxPoints          = 60_000

	limitMax = 10_000_000
)

// Config of the app_guard processor.
type Config struct {
	// MaxSeries is how many distinct series all senders may have within ten minutes.
	MaxSeries int `mapstructure:"max_series"`
	// MaxSeriesPerSender is how many of them one sender may have.
	MaxSeriesPerSender int `mapstructure:"max_series_per_sender"`
	// MaxPointsPerMinutePerSender is how many points, log records or spans a sender
	// may send within a minute.
	MaxPointsPerMinutePerSender int `mapstructure:"max_points_per_minute_per_sender"`
	// OneRegistry states that a Prometheus registry follows that has the metrics of
	// all senders: there a metric has one type, that of the first sender.
	OneRegistry bool `mapstructure:"one_registry"`
	// Allow are reserved names, as Prometheus has them, that pass all the same: those
	// that the prometheus receiver before this processor writes.
	Allow []string `mapstructure:"allow"`
	// AllowInference lets names and attributes of the inference processor pass. For
	// where that processor, or an agent that has it, stands before this one.
	AllowInference bool `mapstructure:"allow_inference"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		MaxSeries:                   defaultMaxSeries,
		MaxSeriesPerSender:          defaultMaxSeriesPerSender,
		MaxPointsPerMinutePerSender: defaultMaxPoints,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist stops the
// start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	for _, limit := range []struct {
		key             string
		value, standard int
	}{
		{"max_series", c.MaxSeries, defaultMaxSeries},
		{"max_series_per_sender", c.MaxSeriesPerSender, defaultMaxSeriesPerSender},
		{"max_points_per_minute_per_sender", c.MaxPointsPerMinutePerSender, defaultMaxPoints},
	} {
		if limit.value < 1 || limit.value > limitMax {
			errs = append(errs, fmt.Errorf("%s: %d: set it between 1 and %d; the default is %d", limit.key, limit.value, limitMax, limit.standard))
		}
	}
	for i, name := range c.Allow {
		switch owner := reserved.Of(name); {
		case !model.LegacyValidation.IsValidMetricName(name):
			errs = append(errs, fmt.Errorf("allow::%d: %q is no name of a metric: write it as Prometheus has it, such as up", i, name))
		case owner == reserved.GPU || owner == reserved.Rules:
			errs = append(errs, fmt.Errorf("allow::%d: %q is a name of GPU telemetry or of a recording rule, which alerts and the console trust: remove it", i, name))
		}
	}
	return errors.Join(errs...)
}
