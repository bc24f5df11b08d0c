// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/control"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/delivery"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/trail"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// Config is the configuration of the webhook exporter.
type Config struct {
	// Receivers are the webhooks by name. The name is what logs, metrics and
	// audit records call them.
	Receivers map[string]endpoint.Config `mapstructure:"receivers"`
	// Retry configures whether and when a delivery is tried again.
	Retry delivery.RetryConfig `mapstructure:"retry"`
	// RetryOnFailure, SendingQueue and Timeout are the keys that all exporters of
	// the Collector have. They are merged onto Retry, Storage and what endpoints
	// leave out.
	RetryOnFailure *RetryOnFailureConfig `mapstructure:"retry_on_failure"`
	SendingQueue   *SendingQueueConfig   `mapstructure:"sending_queue"`
	Timeout        *time.Duration        `mapstructure:"timeout"`
	// GroupWait is how long events of one node, or of one service, wait for each
	// other to travel to a receiver as one delivery, where its format allows
	// that. 0: not at all.
	GroupWait time.Duration `mapstructure:"group_wait"`
	// Storage is the storage extension that keeps deliveries across restarts.
	Storage *component.ID `mapstructure:"storage"`
	// ReplayEvents is how many events are kept for gpuctl webhook replay.
	ReplayEvents int `mapstructure:"replay_events"`
	// ReceiversDir is a folder with a file for each further receiver: its name
	// is the receiver's. It is watched. Empty is none.
	ReceiversDir string `mapstructure:"receivers_dir"`
	// ProxyURL is the proxy through which all receivers are reached; empty is
	// none. It is a secret, as it may hold the proxy's password.
	ProxyURL configopaque.String `mapstructure:"proxy_url"`
	// Control is where gpuctl asks for test events and replays.
	Control control.Config `mapstructure:",squash"`
	// AllowCIDRs opens address ranges that are closed by default (private,
	// loopback, shared), on any port. Link-local and metadata addresses stay
	// closed whatever is written here.
	AllowCIDRs []string `mapstructure:"allow_cidrs"`
	// AllowPorts are the ports that may be dialled at all other addresses.
	AllowPorts []int `mapstructure:"allow_ports"`
	// Audit configures where audit records are kept.
	Audit trail.Config `mapstructure:"audit"`
}

// The parts of the configuration, for programs that write it in Go.
type (
	ReceiverConfig  = endpoint.Config
	FormatConfig    = format.Config
	PagerDutyConfig = format.PagerDutyConfig
	SigningConfig   = signing.Config
	RetryConfig     = delivery.RetryConfig
	ControlConfig   = control.Config
	AuditConfig     = trail.Config
)

// guard makes the guard that decides which addresses may be dialled.
func (c *Config) guard() (*egress.Guard, error) {
	return egress.NewGuard(c.AllowCIDRs, c.AllowPorts, string(c.ProxyURL))
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := checkCommonKeys(conf); err != nil {
		return err
	}
	if err := configkeys.Unmarshal(conf, c); err != nil {
		return err
	}
	c.applyCommonKeys()
	return nil
}

// Validate checks everything that can be known before the first event. Its
// messages name the key in the configuration and never show a URL or a key.
func (c *Config) Validate() error {
	var errs []error
	g, err := c.guard()
	if err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Control.Validate(), c.Audit.Validate())
	if len(c.Receivers) == 0 && c.ReceiversDir == "" {
		errs = append(errs, errors.New("receivers: none is configured; add at least one, as in receivers: {ops: {url: https://…}}, or name a folder of receiver files with receivers_dir"))
	}
	defaults := c.defaults()
	if err := c.validateCommonKeys(); err != nil {
		errs, defaults = append(errs, err), endpoint.Defaults{}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Receivers)) {
		t, err := endpoint.New(name, c.Receivers[name], defaults)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if g != nil {
			errs = append(errs, t.CheckReachable(g))
		}
	}
	return errors.Join(append(errs, c.validateDelivery())...)
}

// validateDelivery checks the keys that determine when deliveries are made.
func (c *Config) validateDelivery() error {
	retry := "retry"
	if c.RetryOnFailure != nil {
		retry = "retry_on_failure" // the form that is configured
	}
	errs := []error{c.Retry.Check(retry)}
	if c.GroupWait < 0 || c.GroupWait > delivery.MaxGroupWait {
		errs = append(errs, fmt.Errorf("group_wait: %v is not within 0s and %v; leave it out to send every event at once", c.GroupWait, delivery.MaxGroupWait))
	}
	if c.GroupWait > 0 && c.GroupWait < delivery.MinInterval {
		errs = append(errs, fmt.Errorf("group_wait: %v is shorter than %v; write it with its unit, as in 5s", c.GroupWait, delivery.MinInterval))
	}
	if c.ReplayEvents < 0 || c.ReplayEvents > maxReplayEvents {
		errs = append(errs, fmt.Errorf("replay_events: %d is not within 0 and %d; leave it out for %d", c.ReplayEvents, maxReplayEvents, defaultReplayEvents))
	}
	return errors.Join(errs...)
}
