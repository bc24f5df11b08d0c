// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// RuleSet is a set of rules that run in one place.
type RuleSet = rule.Set

const (
	// RuleSetDevice are the rules about devices and exporters. They run next to
	// the hardware: in the agent, or in a single collector.
	RuleSetDevice = rule.Device
	// RuleSetService are the rules about services and nodes. They run where the
	// summary is computed: in the gateway, or in a single collector.
	RuleSetService = rule.Service
)

const (
	defaultMaxSubjects = 20_000
	// Above the ten minutes after which gpu_summary forgets a service.
	defaultRestoredTTL = 15 * time.Minute
	defaultSubjectTTL  = 24 * time.Hour
	// Three scrapes of 15 seconds, as gpu_summary counts a point as fresh.
	defaultStaleness = 45 * time.Second
)

// Config of the gpu_events connector.
type Config struct {
	// Rules are the rule sets that run.
	Rules []RuleSet `mapstructure:"rules"`
	// Events has the settings of each event under its name.
	Events Events `mapstructure:"events"`
	// Health is about the health of boards and nodes.
	Health Health `mapstructure:"health"`
	// MaxSubjects is how many devices, exporters, nodes and services each are
	// watched, and how many conditions may be raised at the same time. Events about
	// more are dropped and counted.
	MaxSubjects int `mapstructure:"max_subjects"`
	// Staleness is for how long a point is true. A duration that ends later is decided by
	// the next point.
	Staleness time.Duration `mapstructure:"staleness"`
	// SubjectTTL is after how long a device, exporter or node without telemetry is
	// forgotten, while there is some of others. What is raised about it is cleared.
	SubjectTTL time.Duration `mapstructure:"subject_ttl"`
	// Storage is the storage extension that keeps the state across restarts;
	// nil: it is kept in memory alone.
	Storage *component.ID `mapstructure:"storage"`
	// RestoredTTL is for how long after a restart a condition of a service that was
	// raised before stays raised while evaluations arrive, and none of that service. Used
	// with Storage.
	RestoredTTL time.Duration `mapstructure:"restored_ttl"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Rules:       []RuleSet{RuleSetService},
		Events:      defaultEvents(),
		Health:      Health{MaxReasons: defaultMaxReasons},
		MaxSubjects: defaultMaxSubjects,
		Staleness:   defaultStaleness,
		SubjectTTL:  defaultSubjectTTL,
		RestoredTTL: defaultRestoredTTL,
	}
}

// Unmarshal implements confmap.Unmarshaler. An unknown key and a
// duration without a unit are errors.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy. A configuration
// without any effect is refused.
func (c *Config) Validate() error {
	var errs []error
	for i, set := range c.Rules {
		switch {
		case set != RuleSetService && set != RuleSetDevice:
			errs = append(errs, fmt.Errorf("rules: %q is not a rule set: use [%s], [%s] or both", set, RuleSetDevice, RuleSetService))
		case slices.Contains(c.Rules[:i], set):
			errs = append(errs, fmt.Errorf("rules: %s is listed twice: remove one", set))
		}
	}
	if len(c.Rules) == 0 {
		errs = append(errs, fmt.Errorf("rules: no rule set is listed: set it to [%s] in the agent, [%s] in the gateway", RuleSetDevice, RuleSetService))
	}
	if len(c.Rules) > 0 && !c.Events.any(c.Rules) {
		errs = append(errs, errors.New("events: every event of the rule sets is switched off: enable one, or remove the connector"))
	}
	errs = append(errs, c.Events.validate()...)
	errs = append(errs, c.Health.validate()...)
	if c.MaxSubjects <= 0 {
		errs = append(errs, fmt.Errorf("max_subjects: %d: set it to 1 or more; the default is %d", c.MaxSubjects, defaultMaxSubjects))
	}
	if c.Staleness <= 0 {
		errs = append(errs, fmt.Errorf("staleness: %s: set it above 0, to three collection intervals; the default is %s", c.Staleness, defaultStaleness))
	}
	if least := 10 * time.Minute; c.SubjectTTL < least {
		errs = append(errs, fmt.Errorf("subject_ttl: %s: set it to %s or more; the default is %s", c.SubjectTTL, least, defaultSubjectTTL))
	}
	if c.RestoredTTL <= 0 {
		errs = append(errs, fmt.Errorf("restored_ttl: %s: set it above 0, and above service_ttl of gpu_summary; the default is %s", c.RestoredTTL, defaultRestoredTTL))
	}
	return errors.Join(errs...)
}
