// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package prices is the price book: which rule gives a board its price at a time, budgets,
// the carbon intensity of regions, and the import of price lists. It has no clock and no
// I/O, and no price ever passes through a float.
package prices // import "github.com/otelcol-gpu/otelcol-gpu/internal/prices"

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
)

// RuleConfig is a rule as it is written.
type RuleConfig struct {
	Match         map[string]string `mapstructure:"match" yaml:"match"`
	GPUHour       string            `mapstructure:"gpu_hour" yaml:"gpu_hour,omitempty"`
	InstanceHour  string            `mapstructure:"instance_hour" yaml:"instance_hour,omitempty"`
	GPUs          int64             `mapstructure:"gpus" yaml:"gpus,omitempty"`
	PriceMetric   string            `mapstructure:"price_metric" yaml:"price_metric,omitempty"`
	PriceFraction string            `mapstructure:"price_fraction" yaml:"price_fraction,omitempty"`
	Currency      string            `mapstructure:"currency" yaml:"currency,omitempty"`
	ValidFrom     string            `mapstructure:"valid_from" yaml:"valid_from,omitempty"`
	Kind          string            `mapstructure:"kind" yaml:"kind,omitempty"`
	Source        string            `mapstructure:"source" yaml:"source,omitempty"`
}

// Keys that a rule can match, beside those that begin with nodeLabel.
const (
	MatchModel    = "hw.model"
	MatchProfile  = "gpu.mig.profile"
	MatchHostType = "host.type"
	MatchRegion   = "cloud.region"
	MatchCluster  = "k8s.cluster.name"
	MatchCapacity = "gpu.capacity.type"
	nodeLabel     = "node.label."
)

var matchKeys = []string{MatchModel, MatchProfile, MatchHostType, MatchRegion, MatchCluster, MatchCapacity}

// Kinds of prices.
const (
	KindList       = "list"       // what the provider publishes; the default
	KindContracted = "contracted" // what was agreed
)

// Facts are what is known of a board.
type Facts struct {
	Model, Profile, HostType, Region, Cluster, Capacity string
	Labels                                              map[string]string // of the node
	Boards                                              int64             // of the node; 0: not known; AnyCount: not compared
	Node                                                string
}

// AnyCount are the boards of a node where they cannot be compared with those of the
// instance: a report has no nodes.
const AnyCount = -1

// Why is why a board has no price.
type Why uint8

const (
	Priced      Why = iota
	NoRule          // none matches
	OtherCount      // the rule's instance has another number of GPUs than the node
	NotYet          // no version is valid yet
	NotReported     // the gauge of the rule does not have the node
)

// Price is what a board costs by a rule.
type Price struct {
	// Rate is the price of a GPU for an hour. With PerInstance it is that of the MIG
	// instance, whatever its share.
	Rate        Rate
	PerInstance bool
	Kind        string
	Source      string
	From        time.Time // since when it is configured, or was reported
	Until       time.Time // the next version counts from then; zero: none is known
}

// Book is the rules of a configuration.
type Book struct {
	Currency string
	groups   []group
	gauges   map[string]gauge // by name
}

// group is the versions of one rule: all that match the same.
type group struct {
	match    map[string]string
	versions []version // oldest first
}

type version struct {
	rate         Rate
	gpus         int64 // of the instance; 0: the price is that of a GPU
	from         time.Time
	kind, source string
	// Of a price that a gauge reports: its name, and the part of it in billionths.
	gauge    string
	fraction int64
}

var epoch = time.Unix(0, 0).UTC()

// New returns the book of some rules, or every mistake in them with its key and remedy.
// Rules with the same match are versions of one price, ordered by valid_from.
func New(currency string, rules []RuleConfig) (*Book, error) {
	b := &Book{Currency: currency, gauges: map[string]gauge{}}
	var errs []error
	if !IsCurrency(currency) {
		errs = append(errs, fmt.Errorf("currency: %q: write its three letters of ISO 4217, such as USD", currency))
	}
	for i := range rules {
		refuse := func(key, format string, args ...any) {
			errs = append(errs, &RuleError{i, key, fmt.Sprintf(format, args...)})
		}
		v, ok := rules[i].read(currency, refuse)
		if !ok {
			continue
		}
		g := b.group(rules[i].Match)
		if g == nil {
			b.groups = append(b.groups, group{match: rules[i].Match})
			g = &b.groups[len(b.groups)-1]
		}
		if n := len(g.versions); n > 0 && !g.versions[n-1].from.Before(v.from) {
			refuse("valid_from", "%s is not after that of the earlier rule with the same match, %s: order them by date, the oldest first, each once",
				v.from.Format(time.DateOnly), g.versions[n-1].from.Format(time.DateOnly))
			continue
		}
		g.versions = append(g.versions, v)
		if v.gauge != "" {
			b.gauges[v.gauge] = gauge{}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return b, nil
}

func (b *Book) group(match map[string]string) *group {
	for i := range b.groups {
		if maps.Equal(b.groups[i].match, match) {
			return &b.groups[i]
		}
	}
	return nil
}

// read checks a rule. refuse is called with every mistake.
func (r *RuleConfig) read(currency string, refuse func(key, format string, args ...any)) (v version, ok bool) {
	ok = true
	bad := func(key, format string, args ...any) {
		ok = false
		refuse(key, format, args...)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Match)) {
		if !slices.Contains(matchKeys, key) && (!strings.HasPrefix(key, nodeLabel) || key == nodeLabel) {
			bad("match::"+key, "there is no such key: use %s, or node.label.<name>", strings.Join(matchKeys, ", "))
		}
		if _, err := path.Match(r.Match[key], ""); err != nil || r.Match[key] == "" {
			bad("match::"+key, "%q is no pattern: write a value, with * for any text", r.Match[key])
		}
	}
	if len(r.Match) == 0 {
		bad("match", "nothing is matched: name the boards, {hw.model: \"*\"} for all")
	}
	if r.Currency != "" && r.Currency != currency {
		bad("currency", "%s: the currency is %s, and nothing is converted: convert the price, or remove the rule", r.Currency, currency)
	}
	amount, fraction := int64(0), int64(nano)
	var err error
	switch {
	case r.PriceMetric != "" && r.GPUHour == "" && r.InstanceHour == "":
		if _, profile := r.Match[MatchProfile]; profile || r.GPUs != 0 {
			bad("price_metric", "it is the price of a whole GPU: remove gpus, and do not match %s", MatchProfile)
		}
	case r.PriceMetric != "", (r.GPUHour == "") == (r.InstanceHour == ""):
		bad("gpu_hour", "set either gpu_hour or, with gpus, instance_hour; or price_metric alone")
	case r.GPUHour != "":
		if amount, err = ParseDecimal(r.GPUHour); err != nil {
			bad("gpu_hour", "%q: %v", r.GPUHour, err)
		}
		if r.GPUs != 0 {
			bad("gpus", "it belongs to instance_hour: remove it, or set instance_hour in place of gpu_hour")
		}
	default:
		if amount, err = ParseDecimal(r.InstanceHour); err != nil {
			bad("instance_hour", "%q: %v", r.InstanceHour, err)
		}
		if r.GPUs < 1 || r.GPUs > maxGPUs {
			bad("gpus", "%d: set it to the number of GPUs of the instance, 1 to %d: the price is divided by it", r.GPUs, maxGPUs)
		}
	}
	if r.PriceFraction != "" {
		if fraction, err = ParseDecimal(r.PriceFraction); err != nil || fraction == 0 || fraction > nano {
			bad("price_fraction", "%q: write the part of the price that is the GPU's, above \"0\" and up to \"1\"", r.PriceFraction)
		}
	}
	if v.from, err = parseFrom(r.ValidFrom); err != nil {
		bad("valid_from", "%v", err)
	}
	v.kind, v.source = cmp.Or(r.Kind, KindList), r.Source
	if v.kind != KindList && v.kind != KindContracted {
		bad("kind", "%q: use %s or %s", r.Kind, KindList, KindContracted)
	}
	if !ok {
		return v, false
	}
	v.gpus, v.gauge, v.fraction = r.GPUs, r.PriceMetric, fraction
	v.rate = rate(amount, fraction, max(r.GPUs, 1))
	return v, true
}

// parseFrom reads a day, which begins at 00:00 UTC, or a time. Empty is always.
func parseFrom(text string) (time.Time, error) {
	if text == "" {
		return epoch, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil && t.After(epoch) {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no date: write it as 2026-05-01, or with a time as 2026-05-01T12:00:00Z", text)
}

// IsCurrency reports whether a text has the form of a code of ISO 4217.
func IsCurrency(text string) bool {
	return len(text) == 3 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// At returns the price of a board at a time, by the first rule that matches and has a
// version by then; why, where no rule does. What is returned holds until Until, while the
// facts stay.
func (b *Book) At(f *Facts, at time.Time) (p Price, why Why) {
	why = NoRule
	for i := range b.groups {
		g := &b.groups[i]
		if !matches(g.match, f) {
			continue
		}
		next := slices.IndexFunc(g.versions, func(v version) bool { return v.from.After(at) })
		if next < 0 {
			next = len(g.versions)
		} else if from := g.versions[next].from; p.Until.IsZero() || from.Before(p.Until) {
			p.Until = from
		}
		if next == 0 {
			why = NotYet
			continue
		}
		v := &g.versions[next-1]
		if v.gpus != 0 && v.gpus != f.Boards && f.Boards != AnyCount {
			return p, OtherCount
		}
		p.Rate, p.Kind, p.Source, p.From = v.rate, v.kind, v.source, v.from
		if v.gauge != "" {
			reported, from, until, ok := b.gauges[v.gauge].at(nodeOf(f.Cluster, f.Node), at)
			if p.Until.IsZero() || until.Before(p.Until) {
				p.Until = until
			}
			if !ok {
				return Price{Until: p.Until}, NotReported
			}
			if p.Rate = rate(reported, v.fraction, 1); from.After(p.From) {
				p.From = from
			}
		}
		_, p.PerInstance = g.match[MatchProfile]
		return p, Priced
	}
	return p, why
}

// Labels returns the names of the node labels that the rules match.
func (b *Book) Labels() (names []string) {
	for _, g := range b.groups {
		for key := range g.match {
			if name, is := strings.CutPrefix(key, nodeLabel); is {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// StaleAfter is from which age on a price list is old.
const StaleAfter = 180 * 24 * time.Hour

// Stale returns the sources of the versions that are in force and older than StaleAfter,
// with the date of the oldest. Rules without valid_from have no age.
func (b *Book) Stale(now time.Time) map[string]time.Time {
	old := map[string]time.Time{}
	for _, g := range b.groups {
		var current *version
		for i := range g.versions {
			if !g.versions[i].from.After(now) {
				current = &g.versions[i]
			}
		}
		if current == nil || current.from.Equal(epoch) || now.Sub(current.from) <= StaleAfter {
			continue
		}
		if known, found := old[current.source]; !found || current.from.Before(known) {
			old[current.source] = current.from
		}
	}
	return old
}

func matches(match map[string]string, f *Facts) bool {
	for key, pattern := range match {
		value := f.value(key)
		if value == "" {
			return false // what is not known matches nothing
		}
		if key == MatchProfile {
			pattern, value = migprofile.Normal(pattern), migprofile.Normal(value)
		}
		if !glob(pattern, value) {
			return false
		}
	}
	return true
}

func (f *Facts) value(key string) string {
	switch key {
	case MatchModel:
		return f.Model
	case MatchProfile:
		return f.Profile
	case MatchHostType:
		return f.HostType
	case MatchRegion:
		return f.Region
	case MatchCluster:
		return f.Cluster
	case MatchCapacity:
		return f.Capacity
	}
	return f.Labels[strings.TrimPrefix(key, nodeLabel)]
}

// glob is path.Match, with a * that covers slashes too: models and labels contain them.
func glob(pattern, value string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(value, "/", "\x00"))
	return err == nil && ok
}

const maxGPUs = 1024

// Of returns the rate of a GPU from that of an instance which is p/q of its board: time of
// an instance is counted in that of GPUs.
func (r Rate) Of(p, q int64) Rate {
	if !r.Known() || r.Nano > math.MaxInt64/q || r.Per > math.MaxInt64/p/3_600_000 {
		return Rate{}
	}
	return reduce(r.Nano*q, r.Per*p)
}
