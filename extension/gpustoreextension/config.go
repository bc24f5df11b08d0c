// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpustoreextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension"

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/listening"
)

const (
	engineEmbedded   = "embedded"
	enginePrometheus = "prometheus"

	// lookbackIntervals is how many of the longest intervals a sample counts:
	// with less, one missed scrape is a gap, and at one every value is.
	lookbackIntervals = 2.5
	// minLookback is Prometheus' own.
	minLookback = 5 * time.Minute

	minRetention = 15 * time.Minute
	maxRetention = 10 * 365 * 24 * time.Hour
	minMaxBytes  = 64 << 20

	day = 24 * time.Hour
)

// Config is the configuration of the gpu_store extension.
type Config struct {
	// Engine is embedded (a Prometheus TSDB in the process) or prometheus (a
	// server that speaks the Prometheus HTTP API).
	Engine string `mapstructure:"engine"`
	// Directory holds the samples (engine embedded) and the log of events and
	// deliveries. One process may have it open. It must not be on NFS.
	Directory string `mapstructure:"directory"`

	// Retention is how long samples are kept.
	Retention time.Duration `mapstructure:"retention"`
	// MaxBytes is what the samples may take on disk; the oldest go first.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// OutOfOrderWindow is how late a sample may come behind a newer one of its
	// series. 0 refuses every late sample.
	OutOfOrderWindow time.Duration `mapstructure:"out_of_order_window"`
	// MaxInterval is the longest interval at which a series gets samples.
	MaxInterval time.Duration `mapstructure:"max_interval"`
	// Lookback is how long a sample counts as its series' value, unless the
	// series was ended. 0 is 2.5 times max_interval, and at least 5m.
	Lookback time.Duration `mapstructure:"lookback"`
	// MaxSeries is how many series may be in memory; samples of further new
	// ones are refused.
	MaxSeries int `mapstructure:"max_series"`

	// Query bounds queries, of both engines.
	Query QueryConfig `mapstructure:"query"`
	// API serves the Prometheus HTTP API (engine embedded).
	API APIConfig `mapstructure:"api"`
	// Prometheus is the server of the engine prometheus.
	Prometheus PrometheusConfig `mapstructure:"prometheus"`
	// Log bounds the log of events and deliveries.
	Log LogConfig `mapstructure:"log"`
}

// QueryConfig bounds queries.
type QueryConfig struct {
	// Timeout of a query, waiting for its turn included.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxConcurrent is how many run at once; others wait.
	MaxConcurrent int `mapstructure:"max_concurrent"`
	// MaxSamples is how many samples a query may hold in memory at once (engine
	// embedded), and those that run beside it together. An answer that has as many
	// takes about 100 bytes for each.
	MaxSamples int `mapstructure:"max_samples"`
}

// APIConfig is the server of the Prometheus HTTP API. An empty endpoint is none.
// An endpoint that others than this machine can reach needs auth.
type APIConfig struct {
	confighttp.ServerConfig `mapstructure:",squash"`
}

// PrometheusConfig is where the engine prometheus asks.
type PrometheusConfig struct {
	// URL of the server, as http://prometheus:9090 or with the path behind which
	// the API is. It holds no credentials: auth and headers do.
	URL string `mapstructure:"url"`
	// MaxResponseBytes bounds an answer, decompressed.
	MaxResponseBytes int64 `mapstructure:"max_response_bytes"`

	confighttp.ClientConfig `mapstructure:",squash"`
}

// LogConfig bounds the log of events and deliveries, and that of usage.
type LogConfig struct {
	// MaxEvents and MaxDeliveries are how many of each are kept.
	MaxEvents     int `mapstructure:"max_events"`
	MaxDeliveries int `mapstructure:"max_deliveries"`
	// MaxBytes bounds each of the two, in memory and on disk.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// MaxUsageBytes bounds the files with the rows of gpu_cost. Where it is reached, the
	// oldest hours are added up to days, then the oldest days go. 0 keeps none.
	MaxUsageBytes int64 `mapstructure:"max_usage_bytes"`
	// UsageHours is how long rows of hours are kept, before they are added up to days.
	UsageHours time.Duration `mapstructure:"usage_hours"`
	// UsageDays is how long these are kept.
	UsageDays time.Duration `mapstructure:"usage_days"`
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: "localhost:9090", Transport: confignet.TransportTypeTCP}
	server.MaxRequestBodySize = 1 << 20
	server.ReadHeaderTimeout = 10 * time.Second
	server.ReadTimeout = 30 * time.Second // with its body
	server.WriteTimeout = time.Minute
	return &Config{
		Engine:           engineEmbedded,
		Directory:        "/var/lib/otelcol-gpu/store",
		Retention:        24 * time.Hour,
		MaxBytes:         2 << 30,
		OutOfOrderWindow: 10 * time.Minute,
		MaxInterval:      time.Minute,
		MaxSeries:        500_000,
		Query:            QueryConfig{Timeout: 30 * time.Second, MaxConcurrent: 5, MaxSamples: 1_000_000},
		API:              APIConfig{server},
		Prometheus:       PrometheusConfig{MaxResponseBytes: 64 << 20, ClientConfig: confighttp.NewDefaultClientConfig()},
		Log: LogConfig{
			MaxEvents: 10_000, MaxDeliveries: 10_000, MaxBytes: 16 << 20,
			MaxUsageBytes: 256 << 20, UsageHours: 35 * day, UsageDays: 400 * day,
		},
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate checks everything that can be known before the start.
func (c *Config) Validate() error {
	errs := []error{
		within("query::timeout", c.Query.Timeout, time.Millisecond, 10*time.Minute),
		within("query::max_concurrent", c.Query.MaxConcurrent, 1, 1000),
		within("log::max_events", c.Log.MaxEvents, 10, 1_000_000),
		within("log::max_deliveries", c.Log.MaxDeliveries, 10, 1_000_000),
		within("log::max_bytes", c.Log.MaxBytes, 1<<20, 1<<30),
		c.Log.validateUsage(),
	}
	if strings.TrimSpace(c.Directory) == "" {
		errs = append(errs, errors.New("directory: is empty; set it to one that this process alone writes to, as /var/lib/otelcol-gpu/store"))
	}
	switch c.Engine {
	case engineEmbedded:
		errs = append(errs, c.validateEmbedded())
	case enginePrometheus:
		errs = append(errs, c.Prometheus.validate())
	default:
		errs = append(errs, fmt.Errorf("engine: %q is not known; use %s or %s", c.Engine, engineEmbedded, enginePrometheus))
	}
	return errors.Join(errs...)
}

func (c *LogConfig) validateUsage() error {
	if c.MaxUsageBytes == 0 {
		return nil
	}
	hours := within("log::usage_hours", c.UsageHours, 3*day, 400*day)
	errs := []error{within("log::max_usage_bytes", c.MaxUsageBytes, 16<<20, 16<<30), hours}
	if hours == nil { // else one error would be two
		errs = append(errs, within("log::usage_days", c.UsageDays, c.UsageHours, 10*365*day))
	}
	return errors.Join(errs...)
}

func (c *Config) validateEmbedded() error {
	kept := within("retention", c.Retention, minRetention, maxRetention)
	errs := []error{
		kept,
		within("max_bytes", c.MaxBytes, minMaxBytes, 1<<50),
		within("max_interval", c.MaxInterval, time.Second, time.Hour),
		within("max_series", c.MaxSeries, 1, 100_000_000),
		within("query::max_samples", c.Query.MaxSamples, 1000, 1_000_000_000),
		c.API.validate(),
	}
	if kept == nil { // else one error would be two
		errs = append(errs, within("out_of_order_window", c.OutOfOrderWindow, 0, c.Retention))
	}
	if least := time.Duration(lookbackIntervals * float64(c.MaxInterval)); c.Lookback != 0 && c.Lookback < least {
		errs = append(errs, fmt.Errorf("lookback: %v is less than 2.5 times max_interval (%v), so charts would have gaps where nothing is missing; set it to at least %v, or leave it out", c.Lookback, c.MaxInterval, least))
	}
	if c.Prometheus.URL != "" {
		errs = append(errs, fmt.Errorf("prometheus::url: is set, and engine is %s, which asks no server; set engine: %s or remove it", engineEmbedded, enginePrometheus))
	}
	return errors.Join(errs...)
}

// lookback is what is configured, or follows from max_interval.
func (c *Config) lookback() time.Duration {
	if c.Lookback != 0 {
		return c.Lookback
	}
	return max(minLookback, time.Duration(lookbackIntervals*float64(c.MaxInterval)))
}

func within[T int | int64 | time.Duration](key string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %v is not within %v and %v", key, value, least, most)
	}
	return nil
}

// validate refuses to serve the API to everybody.
func (c *APIConfig) validate() error {
	if c.NetAddr.Endpoint == "" || c.NetAddr.Transport == confignet.TransportTypeUnix {
		return nil
	}
	host, err := listening.Split("api::endpoint", c.NetAddr.Endpoint, "localhost:9090")
	if err != nil {
		return err
	}
	if !listening.Loopback(host) && !c.Auth.HasValue() {
		return fmt.Errorf("api::endpoint: %q can be reached from other machines, and any client that reaches it can read everything; set api::auth to an authenticator, use localhost, or set endpoint to \"\" for no API", c.NetAddr.Endpoint)
	}
	return nil
}

func (c *PrometheusConfig) validate() error {
	errs := []error{within("prometheus::max_response_bytes", c.MaxResponseBytes, 1<<10, 1<<32)}
	if c.Endpoint != "" {
		errs = append(errs, errors.New("prometheus::endpoint: is not used; the key is url"))
	}
	u, err := url.Parse(c.URL)
	refuse := func(why string) { errs = append(errs, errors.New("prometheus::url: "+why)) }
	switch {
	case c.URL == "":
		refuse("is empty; set it to the server, as http://prometheus:9090")
	case err != nil:
		refuse("cannot be parsed; write it as http://prometheus:9090") // without what may be a secret
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		refuse("must be http:// or https:// and a host")
	case u.User != nil:
		refuse("holds credentials; move them to prometheus::auth or prometheus::headers")
	case u.RawQuery != "" || u.Fragment != "":
		refuse("ends in ?… or #…; it is the address in front of /api/v1")
	}
	return errors.Join(errs...)
}
