// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/egress"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/signing"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
)

const (
	// DefaultTimeout is the timeout of endpoints that have no other.
	DefaultTimeout   = 30 * time.Second
	defaultQueueSize = 1000
	defaultWorkers   = 4
	maxWorkers       = 64
	maxQueueSize     = 100_000

	// MinTimeout refuses a number without a unit, which means nanoseconds.
	MinTimeout = time.Millisecond
)

// Config is the configuration of one endpoint.
type Config struct {
	// URL is where events are posted. It is a secret: most webhook services
	// put the credential into the path.
	URL configopaque.String `mapstructure:"url"`
	// Config determines how the body of a request is written.
	format.Config `mapstructure:",squash"`
	// Timeout of one delivery, from name lookup to the end of the response.
	// 0 is 30s.
	Timeout time.Duration `mapstructure:"timeout"`
	// Events are patterns on the event's name, as in gpu.service.*; none is
	// all events.
	Events []string `mapstructure:"events"`
	// MinSeverity withholds what is raised below it: trace, debug, info, warn,
	// error or fatal. Empty is everything.
	MinSeverity string `mapstructure:"min_severity"`
	// Signing holds the keys with which requests to this receiver are signed.
	Signing signing.Config `mapstructure:"signing"`
	// QueueSize is how many deliveries may wait; 0 is 1000.
	QueueSize int `mapstructure:"queue_size"`
	// Workers is how many deliveries may be on their way at once; 0 is 4.
	// Deliveries of one event key keep their order whatever the number.
	Workers int `mapstructure:"workers"`
}

// Endpoint is a receiver's configuration, parsed.
type Endpoint struct {
	Name string
	// Fingerprint is equal for equal configurations.
	Fingerprint string

	egress.Address
	// URLFingerprint is the keyed one of audit records; empty without a key.
	URLFingerprint string
	Encoder        format.Encoder
	Timeout        time.Duration
	Filter         event.Filter
	Signer         *signing.Signer
	QueueSize      int
	Workers        int
}

// NamePattern matches the names that an endpoint can have.
var NamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// shownName is what is shown of an invalid name. It may be a URL in the wrong
// place, which is not shown, nor is a part of it that could be secret.
func shownName(name string) string {
	if scheme, _, isURL := strings.Cut(name, "://"); isURL && NamePattern.MatchString(scheme) {
		return "the URL that begins with " + scheme + ":"
	}
	if strings.ContainsAny(name, "/:@?#&=") || len(name) > 63 {
		return fmt.Sprintf("a text of %d characters", len(name))
	}
	return strconv.Quote(name)
}

// Defaults are the values that the configuration of an endpoint leaves out. 0 is
// the exporter's own default.
type Defaults struct {
	Timeout   time.Duration
	QueueSize int
	Workers   int
}

// apply completes a configuration.
func (d Defaults) apply(cfg *Config) {
	cfg.Timeout = cmp.Or(cfg.Timeout, d.Timeout)
	cfg.QueueSize = cmp.Or(cfg.QueueSize, d.QueueSize)
	cfg.Workers = cmp.Or(cfg.Workers, d.Workers)
}

// CheckTimeout returns what is wrong with a timeout and what to do about it; empty
// if nothing is.
func CheckTimeout(d time.Duration) string {
	switch {
	case d < 0:
		return fmt.Sprintf("is negative; leave it out for %v", DefaultTimeout)
	case d == 0:
		return fmt.Sprintf("would wait without end; leave it out for %v", DefaultTimeout)
	case d < MinTimeout:
		return fmt.Sprintf("is shorter than %v; write it with its unit, as in 10s", MinTimeout)
	}
	return ""
}

// CheckQueueSize is CheckTimeout for the size of a queue.
func CheckQueueSize(n int) string { return within(n, maxQueueSize, defaultQueueSize) }

// CheckWorkers is CheckTimeout for the number of workers.
func CheckWorkers(n int) string { return within(n, maxWorkers, defaultWorkers) }

func within(n, most, standard int) string {
	if n < 1 || n > most {
		return fmt.Sprintf("is not within 1 and %d; leave it out for %d", most, standard)
	}
	return ""
}

// New parses the configuration of the endpoint of that name. Its errors name the
// key, and never show a secret.
func New(name string, cfg Config, d Defaults) (*Endpoint, error) {
	if !NamePattern.MatchString(name) {
		return nil, fmt.Errorf("receivers: %s is not a name: use 1 to 63 letters, digits, dots, dashes or underscores, beginning with a letter or digit", shownName(name))
	}
	key := "receivers::" + name
	d.apply(&cfg)
	t := &Endpoint{
		Name:    name,
		Timeout: cmp.Or(cfg.Timeout, DefaultTimeout), QueueSize: cmp.Or(cfg.QueueSize, defaultQueueSize), Workers: cmp.Or(cfg.Workers, defaultWorkers),
	}
	f, _ := format.Find(cfg.Format)
	var errs []error
	var err error
	if t.Address, err = egress.ParseAddress(cmp.Or(strings.TrimSpace(string(cfg.URL)), f.URL)); err != nil { // a secret kept in a file often ends in a line feed
		errs = append(errs, fmt.Errorf("%s::url: %w", key, err))
	}
	if t.Encoder, err = format.New(name, cfg.Config); err != nil {
		errs = append(errs, fmt.Errorf("%s::%w", key, err))
	}

	if why := CheckTimeout(t.Timeout); why != "" {
		errs = append(errs, fmt.Errorf("%s::timeout: %v %s", key, t.Timeout, why))
	}
	if why := CheckQueueSize(t.QueueSize); why != "" {
		errs = append(errs, fmt.Errorf("%s::queue_size: %d %s", key, t.QueueSize, why))
	}
	if why := CheckWorkers(t.Workers); why != "" {
		errs = append(errs, fmt.Errorf("%s::workers: %d %s", key, t.Workers, why))
	}

	if t.Filter, err = event.NewFilter(key, cfg.Events, cfg.MinSeverity); err != nil {
		errs = append(errs, err)
	}
	if t.Signer, err = signing.New(key, cfg.Signing); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t.Fingerprint = fingerprintOf(cfg)
	return t, nil
}

// CheckReachable refuses an endpoint that the guard blocks every time.
func (t *Endpoint) CheckReachable(g *egress.Guard) error {
	if err := g.CheckAddress(&t.Address); err != nil {
		return fmt.Errorf("receivers::%s::url: %w", t.Name, err)
	}
	return nil
}

// Describe completes a record with the endpoint that it is about.
func (t *Endpoint) Describe(rec *audit.Record) {
	rec.Receiver, rec.Format = t.Name, t.Encoder.Name
	rec.URLScheme, rec.URLHost, rec.URLPort = t.URL.Scheme, t.Host, t.Port
	rec.URLFingerprint = t.URLFingerprint
}
