// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
)

// RetryOnFailureConfig are the keys of the Collector's exporters for what
// RetryConfig has. A nil one keeps the value there.
type RetryOnFailureConfig struct {
	// Enabled is true if it is left out, as it is in every exporter.
	Enabled         *bool          `mapstructure:"enabled"`
	InitialInterval *time.Duration `mapstructure:"initial_interval"`
	MaxInterval     *time.Duration `mapstructure:"max_interval"`
	MaxElapsedTime  *time.Duration `mapstructure:"max_elapsed_time"`
}

// SendingQueueConfig are the keys of the Collector's exporters for the queue of
// each endpoint that has no value of its own.
type SendingQueueConfig struct {
	Enabled      *bool         `mapstructure:"enabled"`
	QueueSize    *int          `mapstructure:"queue_size"`
	NumConsumers *int          `mapstructure:"num_consumers"`
	Storage      *component.ID `mapstructure:"storage"`
}

// sameKeys are the keys of the Collector's exporters that have another name here.
var sameKeys = [][2]string{
	{"retry_on_failure::enabled", "retry::enabled"},
	{"retry_on_failure::initial_interval", "retry::initial_interval"},
	{"retry_on_failure::max_interval", "retry::max_interval"},
	{"retry_on_failure::max_elapsed_time", "retry::max_elapsed_time"},
	{"sending_queue::storage", "storage"},
}

// otherKeys are the keys of the Collector's exporters that this one refuses, and
// what to do instead.
var otherKeys = [][2]string{
	{"retry_on_failure::multiplier", "each interval is three times the one before; remove it"},
	{"retry_on_failure::randomization_factor", "each interval is shortened by a random part, up to half; remove it"},
	{"sending_queue::batch", "a request holds several events only where the endpoint's format can; remove it, and set group_wait"},
	{"sending_queue::block_on_overflow", "a full queue never blocks the pipeline, since it would hold up the other endpoints; remove it, and raise queue_size"},
	{"sending_queue::sizer", "queue_size counts events; remove it"},
	{"sending_queue::wait_for_result", "the pipeline never waits for endpoints; remove it, and set storage to keep events across restarts"},
}

// checkCommonKeys refuses keys of the Collector's exporters that mean nothing here,
// and what is configured with both forms.
func checkCommonKeys(conf *confmap.Conf) error {
	var errs []error
	for _, key := range otherKeys {
		if conf.IsSet(key[0]) {
			errs = append(errs, fmt.Errorf("%s: %v: %s", key[0], conf.Get(key[0]), key[1]))
		}
	}
	for _, key := range sameKeys {
		if conf.IsSet(key[0]) && conf.IsSet(key[1]) {
			errs = append(errs, fmt.Errorf("%s: %v: is set beside %s: %v, which means the same; remove one of them", key[0], conf.Get(key[0]), key[1], conf.Get(key[1])))
		}
	}
	if conf.Get("retry_on_failure") != nil && !conf.IsSet("retry_on_failure::enabled") && conf.IsSet("retry::enabled") {
		errs = append(errs, fmt.Errorf("retry::enabled: %v: is set beside retry_on_failure, which has enabled: true by default; remove retry::enabled, and set retry_on_failure::enabled", conf.Get("retry::enabled")))
	}
	return errors.Join(errs...)
}

// applyCommonKeys merges the keys of the Collector's exporters onto this one's.
func (c *Config) applyCommonKeys() {
	if r := c.RetryOnFailure; r != nil {
		c.Retry.Enabled = true
		set(&c.Retry.Enabled, r.Enabled)
		set(&c.Retry.InitialInterval, r.InitialInterval)
		set(&c.Retry.MaxInterval, r.MaxInterval)
		set(&c.Retry.MaxElapsedTime, r.MaxElapsedTime)
	}
	if q := c.SendingQueue; q != nil && q.Storage != nil {
		c.Storage = q.Storage
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// defaults are the values of endpoints that have none of their own.
func (c *Config) defaults() endpoint.Defaults {
	var d endpoint.Defaults
	set(&d.Timeout, c.Timeout)
	if q := c.SendingQueue; q != nil {
		set(&d.QueueSize, q.QueueSize)
		set(&d.Workers, q.NumConsumers)
	}
	return d
}

// validateCommonKeys checks the values of the keys of the Collector's exporters.
func (c *Config) validateCommonKeys() error {
	var errs []error
	if c.Timeout != nil {
		if why := endpoint.CheckTimeout(*c.Timeout); why != "" {
			errs = append(errs, fmt.Errorf("timeout: %v %s", *c.Timeout, why))
		}
	}
	if q := c.SendingQueue; q != nil {
		if q.Enabled != nil && !*q.Enabled {
			errs = append(errs, errors.New("sending_queue::enabled: false: every endpoint has a queue, so that a slow one does not hold up the others; remove it"))
		}
		for _, limit := range []struct {
			key   string
			value *int
			check func(int) string
		}{{"queue_size", q.QueueSize, endpoint.CheckQueueSize}, {"num_consumers", q.NumConsumers, endpoint.CheckWorkers}} {
			if limit.value == nil {
				continue
			}
			if why := limit.check(*limit.value); why != "" {
				errs = append(errs, fmt.Errorf("sending_queue::%s: %d %s", limit.key, *limit.value, why))
			}
		}
	}
	return errors.Join(errs...)
}
