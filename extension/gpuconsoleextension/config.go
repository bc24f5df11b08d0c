// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// Bounds of the limits.
const (
	mostServices = 500
	mostRequests = 50
	mostPoints   = 5000
)

// Config is the configuration of the gpu_console extension.
type Config struct {
	// ServerConfig is where page and API are served. An endpoint that others
	// than this machine can reach needs auth, which guards the API: the page's
	// files have nothing secret, and a browser that has no token must be able
	// to load what asks for one.
	confighttp.ServerConfig `mapstructure:",squash"`
	// PathPrefix is the path under which a proxy shows the console, as /gpu.
	// Requests with and without it are answered.
	PathPrefix string `mapstructure:"path_prefix"`
	// AllowedHosts are names, beside this machine's own, under which a browser
	// may ask a console without auth: those of a proxy in front of it.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// AccessLog writes a line for each answer: method, path, status, duration.
	AccessLog bool `mapstructure:"access_log"`

	// Store is the gpu_store extension that is read.
	Store component.ID `mapstructure:"store"`
	// QueryTimeout is how long an answer may take.
	QueryTimeout time.Duration `mapstructure:"query_timeout"`
	// CircuitBreaker leaves a store alone that fails.
	CircuitBreaker CircuitBreakerConfig `mapstructure:"circuit_breaker"`

	MaxServicesPerRequest int `mapstructure:"max_services_per_request"` // items a page
	MaxConcurrentRequests int `mapstructure:"max_concurrent_requests"`
	MaxPointsPerSeries    int `mapstructure:"max_points_per_series"`
	MaxSeriesPerRange     int `mapstructure:"max_series_per_range"` // lines of a chart

	// StaleAfter is the age from which data is not called current.
	StaleAfter time.Duration `mapstructure:"stale_after"`
	// Remembered is how long nodes, devices and pods that fell silent are named.
	Remembered time.Duration `mapstructure:"remembered"`
	// ShareFor is how long requests share one reading of the store: an answer is
	// of a moment that is at most so long ago, and has its time. 0: they share nothing.
	ShareFor time.Duration `mapstructure:"share_for"`
	// Refresh is how often a page asks again.
	Refresh time.Duration `mapstructure:"refresh"`

	// What gpu_summary is configured with, for stores to which it publishes no
	// thresholds: the page explains them, and idle devices are found by them.
	Warmup           time.Duration `mapstructure:"warmup"`
	IdleThreshold    float64       `mapstructure:"idle_threshold"`
	IdleFor          time.Duration `mapstructure:"idle_for"`
	PartialThreshold float64       `mapstructure:"partial_threshold"`

	// Grafana is where Open in Grafana leads; without a URL there is no link.
	Grafana GrafanaConfig `mapstructure:"grafana"`
}

func (c *Config) thresholds() fleet.Thresholds {
	return fleet.Thresholds{Warmup: c.Warmup, PartialThreshold: c.PartialThreshold, IdleThreshold: c.IdleThreshold, IdleFor: c.IdleFor}
}

// CircuitBreakerConfig is when a store is left alone.
type CircuitBreakerConfig struct {
	// Failures is after how many requests in a row that the store failed.
	Failures int `mapstructure:"failures"`
	// OpenFor is for how long; then one request tries.
	OpenFor time.Duration `mapstructure:"open_for"`
}

// GrafanaConfig is a dashboard.
type GrafanaConfig struct {
	// URL of Grafana, with the path behind which it is.
	URL string `mapstructure:"url"`
	// Dashboard is the uid of the dashboard.
	Dashboard string `mapstructure:"dashboard"`
	// Variables are the dashboard's variables and what each is set to: cluster,
	// namespace or service.
	Variables map[string]string `mapstructure:"variables"`
}

// defaultVariables are those of the dashboards that come with otelcol-gpu.
var defaultVariables = map[string]string{"app": "service", "service": "service", "namespace": "namespace", "rack": "cluster"}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: "localhost:8480", Transport: confignet.TransportTypeTCP}
	server.MaxRequestBodySize = 64 << 10
	server.ReadHeaderTimeout = 10 * time.Second
	server.ReadTimeout = 10 * time.Second // with its body
	server.WriteTimeout = time.Minute
	return &Config{
		ServerConfig:          server,
		Store:                 store.DefaultID,
		QueryTimeout:          20 * time.Second,
		CircuitBreaker:        CircuitBreakerConfig{Failures: 5, OpenFor: 10 * time.Second},
		MaxServicesPerRequest: 100,
		MaxConcurrentRequests: 10,
		MaxPointsPerSeries:    mostPoints,
		MaxSeriesPerRange:     50,
		StaleAfter:            90 * time.Second,
		Remembered:            time.Hour,
		ShareFor:              2 * time.Second,
		Refresh:               15 * time.Second,
		Warmup:                90 * time.Second,
		IdleThreshold:         0.05,
		IdleFor:               15 * time.Minute,
		PartialThreshold:      0.25,
		Grafana:               GrafanaConfig{Dashboard: "otelcol-gpu-service"},
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate checks everything that can be known before the start.
func (c *Config) Validate() error {
	return errors.Join(
		c.validateReach(),
		within("max_services_per_request", c.MaxServicesPerRequest, 1, mostServices),
		within("max_concurrent_requests", c.MaxConcurrentRequests, 1, mostRequests),
		within("max_points_per_series", c.MaxPointsPerSeries, 2, mostPoints),
		within("max_series_per_range", c.MaxSeriesPerRange, 1, 500),
		within("query_timeout", c.QueryTimeout, 100*time.Millisecond, 5*time.Minute),
		within("circuit_breaker::failures", c.CircuitBreaker.Failures, 1, 1000),
		within("circuit_breaker::open_for", c.CircuitBreaker.OpenFor, time.Second, 10*time.Minute),
		within("stale_after", c.StaleAfter, 2*time.Second, time.Hour),
		within("remembered", c.Remembered, time.Minute, 24*time.Hour),
		within("share_for", c.ShareFor, 0, 10*time.Second),
		within("refresh", c.Refresh, time.Second, time.Hour),
		within("warmup", c.Warmup, 0, time.Hour),
		within("idle_threshold", c.IdleThreshold, 0, 1),
		within("idle_for", c.IdleFor, time.Second, 24*time.Hour),
		within("partial_threshold", c.PartialThreshold, 0, 1),
		c.Grafana.validate(),
	)
}

func within[T int | float64 | time.Duration](key string, value, least, most T) error {
	if !(value >= least && value <= most) { // NaN too
		return fmt.Errorf("%s: %v is not within %v and %v", key, value, least, most)
	}
	return nil
}

var prefixes = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)

// validateReach refuses to serve the API to everybody.
func (c *Config) validateReach() error {
	var errs []error
	if !prefixes.MatchString(c.PathPrefix) {
		errs = append(errs, fmt.Errorf("path_prefix: %q is no path as /gpu, without a slash at its end", c.PathPrefix))
	}
	for _, h := range c.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/:*@ ") {
			errs = append(errs, fmt.Errorf("allowed_hosts: %q is no name of a host; write it without scheme and port", h))
		}
	}
	if c.NetAddr.Endpoint == "" {
		return errors.Join(append(errs, errors.New("endpoint: is empty; set it to an address and port, as localhost:8480"))...)
	}
	if c.NetAddr.Transport == confignet.TransportTypeUnix {
		return errors.Join(errs...)
	}
	host, err := listening.Split("endpoint", c.NetAddr.Endpoint, "localhost:8480")
	switch {
	case err != nil:
		errs = append(errs, err)
	case !listening.Loopback(host) && !c.Auth.HasValue():
		errs = append(errs, fmt.Errorf("endpoint: %q can be reached from other machines, and any client that reaches it can see the fleet; set auth::authenticator to an extension such as bearertokenauth, or use localhost (kubectl port-forward reaches it)", c.NetAddr.Endpoint))
	}
	return errors.Join(errs...)
}

var (
	variables  = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	dashboards = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	parts      = []string{"cluster", "namespace", "service"}
)

func (g *GrafanaConfig) validate() error {
	if g.URL == "" {
		return nil
	}
	var errs []error
	u, err := url.Parse(g.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		errs = append(errs, errors.New("grafana::url: must be http:// or https:// and a host, as https://grafana.example.com"))
	case u.User != nil:
		errs = append(errs, errors.New("grafana::url: holds credentials, which every reader of the page would see; remove them"))
	case u.RawQuery != "" || u.Fragment != "":
		errs = append(errs, errors.New("grafana::url: ends in ?… or #…; it is the address in front of /d/"))
	}
	if !dashboards.MatchString(g.Dashboard) {
		errs = append(errs, fmt.Errorf("grafana::dashboard: %q is no uid of a dashboard: letters, digits, - and _, at most 40", g.Dashboard))
	}
	for name, part := range g.Variables {
		if !variables.MatchString(name) {
			errs = append(errs, fmt.Errorf("grafana::variables: %q is no name of a variable: letters, digits and _", name))
		}
		if !slices.Contains(parts, part) {
			errs = append(errs, fmt.Errorf("grafana::variables::%s: %q is not known; use cluster, namespace or service", name, part))
		}
	}
	return errors.Join(errs...)
}

// link is what a page needs to know to lead there; nil if it cannot.
func (g *GrafanaConfig) link() *consoleapi.Grafana {
	if g.URL == "" {
		return nil
	}
	set := g.Variables
	if set == nil {
		set = defaultVariables
	}
	out := &consoleapi.Grafana{DashboardURL: strings.TrimRight(g.URL, "/") + "/d/" + g.Dashboard, Variables: []consoleapi.GrafanaVariable{}}
	for name, part := range set {
		out.Variables = append(out.Variables, consoleapi.GrafanaVariable{Name: name, Value: part})
	}
	slices.SortFunc(out.Variables, func(a, b consoleapi.GrafanaVariable) int { return strings.Compare(a.Name, b.Name) })
	return out
}
