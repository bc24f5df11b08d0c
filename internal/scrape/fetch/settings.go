// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package fetch is how a page of an exporter is asked for and how that ends: by a
// receiver, which reads page after page, and by doctor, which reads one. Outcomes and
// remedies are the same ones for both.
package fetch

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
)

// Settings are those keys of the receiver's configuration that decide how a page
// is asked for and read, to read one page without a receiver. A receiver itself reads
// them by Prometheus' loader.
type Settings struct {
	// Job is Prometheus' label job of the target: the receiver's type.
	Job           string `mapstructure:"-"`
	MaxLabels     int    `mapstructure:"max_labels"`
	MaxLabelBytes int    `mapstructure:"max_label_bytes"`
	Scrape        struct {
		Scheme                string              `mapstructure:"scheme"`
		MetricsPath           string              `mapstructure:"metrics_path"`
		Params                map[string][]string `mapstructure:"params"`
		FollowRedirects       *bool               `mapstructure:"follow_redirects"`
		BodySizeLimit         string              `mapstructure:"body_size_limit"`
		SampleLimit           int                 `mapstructure:"sample_limit"`
		LabelLimit            int                 `mapstructure:"label_limit"`
		LabelNameLengthLimit  int                 `mapstructure:"label_name_length_limit"`
		LabelValueLengthLimit int                 `mapstructure:"label_value_length_limit"`
		Relabel               any                 `mapstructure:"metric_relabel_configs"`
	} `mapstructure:"scrape"`
}

// Defaults of every receiver's configuration.
const (
	DefaultBodySizeLimit = "16MB"
	DefaultMaxLabels     = 128
	DefaultMaxLabelBytes = 4096
)

// DefaultSettings are those of a receiver of a type without such keys.
func DefaultSettings(receiver string) Settings {
	s := Settings{Job: receiver, MaxLabels: DefaultMaxLabels, MaxLabelBytes: DefaultMaxLabelBytes}
	s.Scrape.Scheme, s.Scrape.MetricsPath, s.Scrape.BodySizeLimit = "http", "/metrics", DefaultBodySizeLimit
	return s
}

// Options are how the page of the exporter at an address is read.
func (s *Settings) Options(instance string) (pagetext.Options, error) {
	o := pagetext.Options{
		Job: s.Job, Instance: instance,
		Samples: s.Scrape.SampleLimit, Labels: s.Scrape.LabelLimit,
		LabelNameBytes: s.Scrape.LabelNameLengthLimit, LabelValueBytes: s.Scrape.LabelValueLengthLimit,
		MaxLabels: s.MaxLabels, MaxLabelBytes: s.MaxLabelBytes,
	}
	if s.Scrape.Relabel == nil {
		return o, nil
	}
	text, err := yaml.Marshal(s.Scrape.Relabel)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &o.Relabel)
	}
	for _, rule := range o.Relabel {
		if rule == nil {
			err = errors.Join(err, errors.New("a rule is empty"))
			continue
		}
		rule.NameValidationScheme = model.UTF8Validation // as Prometheus' loader does
		err = errors.Join(err, rule.Validate(model.UTF8Validation))
	}
	if err != nil {
		return o, fmt.Errorf("scrape::metric_relabel_configs: %w", err)
	}
	return o, nil
}

// BodyLimit is scrape::body_size_limit in bytes, as Prometheus reads it: KB and
// KiB are 1024 bytes. 0 is no limit.
func (s *Settings) BodyLimit() int64 {
	text := s.Scrape.BodySizeLimit
	number := strings.TrimRight(text, "KMGTiB")
	n, err := strconv.ParseInt(number, 10, 64)
	shift := map[string]int{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[strings.TrimRight(text[len(number):], "iB")]
	if err != nil || n <= 0 || n > math.MaxInt64>>shift {
		return 0
	}
	return n << shift
}

// PagePath is the path of an exporter's URL, by default /metrics.
func PagePath(u *url.URL) string {
	if u.Path == "" {
		return "/metrics"
	}
	return u.Path
}

// Address is what the receiver asks for at an endpoint.
func Address(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawQuery = PagePath(u), u.Query().Encode()
	return u, nil
}
