// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

const (
	defaultTimeout   = 30 * time.Second
	defaultQueueSize = 1000
	defaultWorkers   = 4
	maxWorkers       = 64
	maxQueueSize     = 100_000

	// minDuration refuses a number without a unit, which means nanoseconds.
	minDuration = time.Millisecond
)

// Config is the configuration of the webhook exporter.
type Config struct {
	// Receivers are the webhooks by name. The name is what logs, metrics and
	// audit records call them.
	Receivers map[string]ReceiverConfig `mapstructure:"receivers"`
	// Retry says whether and when a delivery is tried again.
	Retry RetryConfig `mapstructure:"retry"`
	// GroupWait is how long events of one node, or of one service, wait for each
	// other to travel to a receiver as one delivery, where its format allows
	// that. 0: not at all.
	GroupWait time.Duration `mapstructure:"group_wait"`
	// Storage is the storage extension that keeps deliveries over a restart.
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
	Control ControlConfig `mapstructure:",squash"`
	// AllowCIDRs opens address ranges that are closed by default (private,
	// loopback, shared), on any port. Link-local and metadata addresses stay
	// closed whatever is written here.
	AllowCIDRs []string `mapstructure:"allow_cidrs"`
	// AllowPorts are the ports that may be dialled at all other addresses.
	AllowPorts []int `mapstructure:"allow_ports"`
	// Audit says where audit records are kept.
	Audit AuditConfig `mapstructure:"audit"`
}

// ReceiverConfig is one webhook.
type ReceiverConfig struct {
	// URL is where events are posted. It is a secret: most webhook services
	// put the credential into the path.
	URL configopaque.String `mapstructure:"url"`
	// FormatConfig says how the body of a request is written.
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
	Signing SigningConfig `mapstructure:"signing"`
	// QueueSize is how many deliveries may wait; 0 is 1000.
	QueueSize int `mapstructure:"queue_size"`
	// Workers is how many deliveries may be on their way at once; 0 is 4.
	// Deliveries of one event key keep their order whatever the number.
	Workers int `mapstructure:"workers"`
}

// SigningConfig holds signing keys. More than one key of a kind signs with
// each, so that a receiver can change from one to the next.
type SigningConfig struct {
	// Standard are Standard Webhooks keys: whsec_… (HMAC-SHA256) or whsk_…
	// (ed25519 private key), base64.
	Standard []configopaque.String `mapstructure:"standard"`
	// Convox are keys for the Convox-Signature header, lower-case hexadecimal.
	Convox []configopaque.String `mapstructure:"convox"`
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate checks everything that can be known before the first event. Its
// messages name the key in the configuration and never show a URL or a key.
func (c *Config) Validate() error {
	var errs []error
	g, err := newReach(c)
	if err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Control.validate(), c.Audit.validate())
	if len(c.Receivers) == 0 && c.ReceiversDir == "" {
		errs = append(errs, errors.New("receivers: none is configured; add at least one, as in receivers: {ops: {url: https://…}}, or name a folder of receiver files with receivers_dir"))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Receivers)) {
		t, err := newTarget(name, c.Receivers[name])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if g != nil {
			errs = append(errs, checkReachable(t, g))
		}
	}
	return errors.Join(append(errs, c.validateDelivery())...)
}

// checkReachable refuses a receiver that the guard would block every time.
func checkReachable(t *target, g *guard) error {
	if g.proxy != nil {
		return checkThroughProxy(t)
	}
	if why := g.refusal(t.host, t.port); why != "" {
		return fmt.Errorf("receivers::%s::url: %s", t.name, why)
	}
	return nil
}

// target is a receiver's configuration, parsed.
type target struct {
	name string
	// fingerprint is equal for equal configurations.
	fingerprint string

	url *url.URL // without user info
	// urlFingerprint is the keyed one of audit records; empty without a key.
	urlFingerprint string
	user           *url.Userinfo
	host           string
	port           uint16
	encoder        format.Encoder
	timeout        time.Duration
	filter         event.Filter
	signer         *signer
	queueSize      int
	workers        int
}

var (
	receiverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_.])?$`)
)

// shownName is what is shown of a name that is none. It may be a URL in the wrong
// place, which is not shown, nor is a part of it that could be secret.
func shownName(name string) string {
	if scheme, _, isURL := strings.Cut(name, "://"); isURL && receiverName.MatchString(scheme) {
		return "the URL that begins with " + scheme + ":"
	}
	if strings.ContainsAny(name, "/:@?#&=") || len(name) > 63 {
		return fmt.Sprintf("a text of %d characters", len(name))
	}
	return strconv.Quote(name)
}

func newTarget(name string, cfg ReceiverConfig) (*target, error) {
	if !receiverName.MatchString(name) {
		return nil, fmt.Errorf("receivers: %s is not a name: use 1 to 63 letters, digits, dots, dashes or underscores, beginning with a letter or digit", shownName(name))
	}
	key := "receivers::" + name
	t := &target{name: name, timeout: cfg.Timeout, queueSize: cfg.QueueSize, workers: cfg.Workers}
	f, _ := format.Find(cfg.Format)
	address := cmp.Or(strings.TrimSpace(string(cfg.URL)), f.URL) // a secret kept in a file often ends in a line feed
	errs := []error{t.parseURL(key, address)}
	var err error
	if t.encoder, err = format.New(name, cfg.Config); err != nil {
		errs = append(errs, fmt.Errorf("%s::%w", key, err))
	}

	switch {
	case cfg.Timeout < 0:
		errs = append(errs, fmt.Errorf("%s::timeout: %v is negative; leave it out for %v", key, cfg.Timeout, defaultTimeout))
	case cfg.Timeout == 0:
		t.timeout = defaultTimeout
	case cfg.Timeout < minDuration:
		errs = append(errs, fmt.Errorf("%s::timeout: %v is shorter than %v; write it with its unit, as in 10s", key, cfg.Timeout, minDuration))
	}
	switch {
	case cfg.QueueSize < 0 || cfg.QueueSize > maxQueueSize:
		errs = append(errs, fmt.Errorf("%s::queue_size: %d is not within 1 and %d; leave it out for %d", key, cfg.QueueSize, maxQueueSize, defaultQueueSize))
	case cfg.QueueSize == 0:
		t.queueSize = defaultQueueSize
	}
	switch {
	case cfg.Workers < 0 || cfg.Workers > maxWorkers:
		errs = append(errs, fmt.Errorf("%s::workers: %d is not within 1 and %d; leave it out for %d", key, cfg.Workers, maxWorkers, defaultWorkers))
	case cfg.Workers == 0:
		t.workers = defaultWorkers
	}

	if t.filter, err = event.NewFilter(key, cfg.Events, cfg.MinSeverity); err != nil {
		errs = append(errs, err)
	}
	if t.signer, err = newSigner(key, cfg.Signing); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t.fingerprint = fingerprintOf(cfg)
	return t, nil
}

// parseURL reads the receiver's URL. url.Parse quotes what it was given in its
// errors, so they are replaced.
func (t *target) parseURL(key, raw string) error {
	refuse := func(why string) error { return fmt.Errorf("%s::url: %s", key, why) }
	if raw == "" {
		return refuse("is empty; set the address to post to")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return refuse("cannot be parsed; write it as https://host/path")
	case !strings.Contains(raw, "://"):
		return refuse("has no scheme; write it as https://host/path")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(fmt.Sprintf("its scheme is %q, and only http and https can be posted to; write it as https://host/path", u.Scheme))
	case u.Hostname() == "":
		return refuse("names no host")
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return refuse("has a fragment (#…), which is never sent; remove it")
	}
	t.host = strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(t.host); err == nil {
		if addr.Zone() != "" {
			return refuse("has an address with a zone; link-local addresses stay closed")
		}
	} else if !hostName.MatchString(t.host) {
		return refuse("has a host of other characters than letters, digits, dots and dashes; write international names in their xn-- form")
	}
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return refuse("has a port that is not within 1 and 65535")
		}
		t.port = uint16(port)
	case u.Scheme == "https":
		t.port = 443
	default:
		t.port = 80
	}
	t.user, u.User = u.User, nil
	t.url = u
	return nil
}

// tokenLike is a part of a path that is no word: the credential of most
// webhook services.
var tokenLike = regexp.MustCompile(`^[A-Za-z0-9_.~-]{16,}$`)

// plainSecret says which secret a request carries unencrypted to another machine,
// empty if none.
func (t *target) plainSecret() string {
	switch {
	case t.url.Scheme != "http" || listening.Loopback(t.host):
		return ""
	case t.user != nil:
		return "user info"
	case len(t.encoder.Secrets) > 0:
		return t.encoder.Secrets[0]
	case t.url.RawQuery != "":
		return "query"
	case slices.ContainsFunc(strings.Split(t.url.Path, "/"), func(part string) bool {
		return tokenLike.MatchString(part) && strings.ContainsAny(part, "0123456789")
	}):
		return "path"
	}
	return ""
}
