// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclconnector

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/rank"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
)

// Scopes.
const (
	ScopeRank         = "rank"
	ScopeCommunicator = "communicator"
)

// What max_communicators is where it is 0.
const (
	communicatorsOfNode    = 512
	communicatorsOfGateway = 20_000
)

// Config of the nccl connector.
type Config struct {
	// Scope is rank on a node, where lines of Inspector arrive, or communicator where the samples
	// of all nodes do.
	Scope string `mapstructure:"scope"`
	// Interval is the time between two evaluations.
	Interval time.Duration `mapstructure:"interval"`
	// MaxCommunicators limits the communicators in memory. 0: 512 of a node, else 20,000.
	MaxCommunicators int `mapstructure:"max_communicators"`

	// PathIdentity is a regular expression that finds who writes a file in its path, by groups
	// that are named namespace and pod, or job. Empty: the two of the examples.
	PathIdentity string `mapstructure:"path_identity"`
	// RankLabel has a series for each rank.
	RankLabel bool `mapstructure:"rank_label"`
	// SamplesPerInterval is how many operations of one kind a rank sends of an interval.
	SamplesPerInterval int `mapstructure:"samples_per_interval"`
	// RankTTL is the time without a record after which a rank is forgotten.
	RankTTL time.Duration `mapstructure:"rank_ttl"`
	// NodeName becomes k8s.node.name. Empty: the machine's name.
	NodeName string `mapstructure:"node_name"`
	// ClusterName becomes k8s.cluster.name.
	ClusterName string `mapstructure:"cluster_name"`
	// MaxSeries limits the series of a node.
	MaxSeries int `mapstructure:"max_series"`
	// MaxFiles limits the files whose lines are read.
	MaxFiles int `mapstructure:"max_files"`

	// Window is over which time ranks are compared.
	Window time.Duration `mapstructure:"window"`
	// Straggler is when a rank is one.
	Straggler StragglerConfig `mapstructure:"straggler"`
	// StallAfter is the least time without a record of any rank of a job after which it stalls.
	StallAfter time.Duration `mapstructure:"stall_after"`
	// MaxRanks limits the ranks of a communicator.
	MaxRanks int `mapstructure:"max_ranks"`
	// MaxWaitingBytes limits the samples that wait for those of other ranks.
	MaxWaitingBytes int `mapstructure:"max_waiting_bytes"`
}

// StragglerConfig is when a rank is a straggler.
type StragglerConfig struct {
	// Share is of how many operations it comes last, as a fraction.
	Share float64 `mapstructure:"share"`
	// Cost is its lateness as a fraction of the time in operations.
	Cost float64 `mapstructure:"cost"`
	// Windows is in how many in a row both hold.
	Windows int `mapstructure:"windows"`
}

var _ confmap.Validator = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Interval:           10 * time.Second,
		RankLabel:          true,
		SamplesPerInterval: 20,
		RankTTL:            15 * time.Minute,
		MaxSeries:          5000,
		MaxFiles:           4096,
		Window:             time.Minute,
		Straggler:          StragglerConfig{Share: 0.5, Cost: 0.05, Windows: 3},
		StallAfter:         5 * time.Minute,
		MaxRanks:           4096,
		MaxWaitingBytes:    64 << 20,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate names every key that cannot work, with the remedy.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if c.Scope != ScopeRank && c.Scope != ScopeCommunicator {
		bad("scope: %q: set it to %s on the nodes, and to %s where their telemetry meets", c.Scope, ScopeRank, ScopeCommunicator)
	}
	for _, d := range []struct {
		key         string
		value       time.Duration
		least, most time.Duration
	}{
		{"interval", c.Interval, time.Second, time.Minute},
		{"rank_ttl", c.RankTTL, time.Minute, 24 * time.Hour},
		{"window", c.Window, 10 * time.Second, time.Hour},
		{"stall_after", c.StallAfter, time.Minute, 24 * time.Hour},
	} {
		if d.value < d.least || d.value > d.most {
			bad("%s: %s: set it to %s or more, and to %s at most", d.key, d.value, d.least, d.most)
		}
	}
	for _, n := range []struct {
		key                string
		value, least, most int
	}{
		{"max_communicators", c.MaxCommunicators, 0, 1_000_000},
		{"samples_per_interval", c.SamplesPerInterval, 1, 1000},
		{"max_series", c.MaxSeries, 1, 1_000_000},
		{"max_files", c.MaxFiles, 1, 100_000},
		{"straggler::windows", c.Straggler.Windows, 1, 60},
		{"max_ranks", c.MaxRanks, 2, 1 << 20},
		{"max_waiting_bytes", c.MaxWaitingBytes, 1 << 20, 1 << 34},
	} {
		if n.value < n.least || n.value > n.most {
			bad("%s: %d: set it to %d or more, and to %d at most", n.key, n.value, n.least, n.most)
		}
	}
	for key, v := range map[string]float64{"straggler::share": c.Straggler.Share, "straggler::cost": c.Straggler.Cost} {
		// Turned round so that NaN, which YAML can spell, fails it.
		if !(v > 0 && v < 1) {
			bad("%s: %v: it is a fraction: set it between 0 and 1", key, v)
		}
	}
	if _, err := c.paths(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// paths are the patterns that find who writes a file.
func (c *Config) paths() ([]*regexp.Regexp, error) {
	if c.PathIdentity == "" {
		return []*regexp.Regexp{rank.Kubernetes, rank.Slurm}, nil
	}
	pattern, err := regexp.Compile(c.PathIdentity)
	if err != nil {
		return nil, fmt.Errorf("path_identity: %w: write a regular expression as in https://pkg.go.dev/regexp/syntax", err)
	}
	groups := slices.DeleteFunc(slices.Clone(pattern.SubexpNames()), func(name string) bool { return name == "" })
	slices.Sort(groups)
	if !slices.Equal(groups, []string{"job"}) && !slices.Equal(groups, []string{"namespace", "pod"}) {
		return nil, fmt.Errorf("path_identity: %q has the named groups %v: name (?P<namespace>…) and (?P<pod>…), or (?P<job>…)", c.PathIdentity, groups)
	}
	return []*regexp.Regexp{pattern}, nil
}

func (c *Config) maxCommunicators() int {
	switch {
	case c.MaxCommunicators > 0:
		return c.MaxCommunicators
	case c.Scope == ScopeRank:
		return communicatorsOfNode
	}
	return communicatorsOfGateway
}
