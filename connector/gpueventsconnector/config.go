// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
)

// RuleSet is a set of rules that run in one place.
type RuleSet string

// RuleSetService are the rules about services. They run where the summary is
// computed: in the gateway, or in a single collector.
const RuleSetService RuleSet = "service"

const (
	defaultMaxSubjects = 20_000
	// Above the ten minutes after which gpu_summary forgets a service.
	defaultRestoredTTL = 15 * time.Minute
)

// Config of the gpu_events connector.
type Config struct {
	// Rules are the rule sets that run.
	Rules []RuleSet `mapstructure:"rules"`
	// Events configures each event by its name.
	Events Events `mapstructure:"events"`
	// MaxSubjects is how many conditions may be raised at the same time. A
	// further one raises no event; it is counted.
	MaxSubjects int `mapstructure:"max_subjects"`
	// Storage is the storage extension that keeps what is raised over a restart;
	// nil: it is kept in memory alone.
	Storage *component.ID `mapstructure:"storage"`
	// RestoredTTL is for how long after a restart a condition that was raised
	// before it stays raised while evaluations arrive that do not name its
	// subject. Used with Storage.
	RestoredTTL time.Duration `mapstructure:"restored_ttl"`
}

// Events has one block for each event, under the event's name.
type Events struct {
	ServicePartial Event `mapstructure:"gpu.service.partial"`
}

// Event is what can be configured for every event.
type Event struct {
	Enabled bool `mapstructure:"enabled"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Rules:       []RuleSet{RuleSetService},
		Events:      Events{ServicePartial: Event{Enabled: true}},
		MaxSubjects: defaultMaxSubjects,
		RestoredTTL: defaultRestoredTTL,
	}
}

// Validate reports every key that cannot be used, with its remedy. What would
// do nothing is refused.
func (c *Config) Validate() error {
	var errs []error
	for i, set := range c.Rules {
		switch {
		case set == "device":
			errs = append(errs, errors.New("rules: this version has no rules in the set device: remove it"))
		case set != RuleSetService:
			errs = append(errs, fmt.Errorf("rules: %q is no rule set: use [%s]", set, RuleSetService))
		case slices.Contains(c.Rules[:i], set):
			errs = append(errs, fmt.Errorf("rules: %s is there twice: remove one", set))
		}
	}
	if len(c.Rules) == 0 {
		errs = append(errs, fmt.Errorf("rules: no rule set is named: set it to [%s]", RuleSetService))
	}
	if !c.Events.ServicePartial.Enabled {
		errs = append(errs, errors.New("events: every event of the rule sets is switched off: enable one, or remove the connector"))
	}
	if c.MaxSubjects <= 0 {
		errs = append(errs, fmt.Errorf("max_subjects: %d: set it to 1 or more; the default is %d", c.MaxSubjects, defaultMaxSubjects))
	}
	if c.RestoredTTL <= 0 {
		errs = append(errs, fmt.Errorf("restored_ttl: %s: set it above 0, and above service_ttl of gpu_summary; the default is %s", c.RestoredTTL, defaultRestoredTTL))
	}
	return errors.Join(errs...)
}
