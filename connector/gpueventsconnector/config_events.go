// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"reflect"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rule"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/rules"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// Events has the settings of each rule, under the name of its event. A setting is a
// bool, float64, int or time.Duration, as in the defaults; the README lists them.
type Events map[string]rule.Settings

var (
	_ confmap.Unmarshaler = (*Events)(nil)
	_ configkeys.Keyed    = (*Events)(nil)
)

func defaultEvents() Events {
	events := Events{}
	for _, r := range rules.All() {
		events[r.Event] = r.Defaults()
	}
	return events
}

// Keys implements configkeys.Keyed.
func (*Events) Keys() reflect.Type { return rule.Type(rules.All()) }

// Unmarshal implements confmap.Unmarshaler. Keys that are not in conf keep their
// values.
func (e *Events) Unmarshal(conf *confmap.Conf) error {
	decoded := reflect.New(e.Keys())
	all := rules.All()
	for i, r := range all {
		r.Write((*e)[r.Event], decoded.Elem().Field(i))
	}
	if err := conf.Unmarshal(decoded.Interface()); err != nil {
		return err
	}
	for i, r := range all {
		(*e)[r.Event] = r.Read(decoded.Elem().Field(i))
	}
	return nil
}

// any reports whether an event of the rule sets is enabled.
func (e Events) any(sets []RuleSet) bool {
	for _, r := range rules.All() {
		for _, set := range sets {
			if r.Set == set && e[r.Event].Enabled() {
				return true
			}
		}
	}
	return false
}

// validate reports the keys that cannot be used.
func (e Events) validate() (errs []error) {
	for _, r := range rules.All() {
		if s, set := e[r.Event]; set {
			errs = append(errs, r.Validate(s)...)
		}
	}
	return errs
}
