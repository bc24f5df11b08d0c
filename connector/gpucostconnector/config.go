// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpucostconnector

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/share"
	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

const (
	defaultAllocationTTL = 5 * time.Minute
	defaultBridge        = time.Hour
	defaultIdleThreshold = 0.05
	defaultIdleFor       = 15 * time.Minute
	defaultFlushInterval = time.Minute
	defaultMaxRows       = 5_000
	defaultMaxDevices    = 20_000

	// closeAfter is how long a board may be silent until its account is closed,
	// unavailableFor how long a living node may not list one.
	closeAfter     = 24 * time.Hour
	unavailableFor = 7 * 24 * time.Hour
)

// What rows are kept of.
const (
	PerService = "service"
	PerPod     = "pod"
)

// How energy is divided.
const (
	SplitByShare    = "share"
	SplitByActivity = "activity"
)

// Config of the gpu_cost connector.
type Config struct {
	// Currency of all prices, ISO 4217. Nothing is converted.
	Currency string `mapstructure:"currency"`
	// Prices are the rules of the price book; the first that matches a board decides.
	Prices []prices.RuleConfig `mapstructure:"prices"`
	// PricesFile is a file with such rules, in place of Prices.
	PricesFile string `mapstructure:"prices_file"`
	// Tenant is where the tenant of a device is found.
	Tenant TenantConfig `mapstructure:"tenant"`
	// Budgets only inform: nothing is stopped by them.
	Budgets []prices.BudgetConfig `mapstructure:"budgets"`
	// Carbon is nil where no carbon dioxide is computed.
	Carbon *prices.CarbonConfig `mapstructure:"carbon"`
	// MIGShare is what the share of a MIG instance is measured by.
	MIGShare share.MIGBy `mapstructure:"mig_share"`
	// MIGSlices are the slices of models that are not in the table, or not as it has them.
	// A key is a part of hw.model.
	MIGSlices map[string]share.Slices `mapstructure:"mig_slices"`
	// VGPUShare is what the share of a software partition is measured by.
	VGPUShare share.VGPUBy `mapstructure:"vgpu_share"`
	// Per is what rows are kept of: service, or pod.
	Per string `mapstructure:"per"`
	// EnergySplit is how the energy of a board is divided over its parts: share, or activity.
	EnergySplit string `mapstructure:"energy_split"`
	// IdleWatts are what boards burn on which nothing runs, for energy_split activity. A key
	// is a part of hw.model.
	IdleWatts map[string]float64 `mapstructure:"idle_watts"`
	// AllocationTTL is how long a gap may be that belongs to the snapshot before it.
	AllocationTTL time.Duration `mapstructure:"allocation_ttl"`
	// Bridge is how long one may be that has the same owners at both ends.
	Bridge time.Duration `mapstructure:"bridge"`
	// Staleness is how long a utilization holds. 0: for two and a half intervals of its points,
	// at least 45s.
	Staleness time.Duration `mapstructure:"staleness"`
	// IdleThreshold is the utilization below which a device is idle, IdleFor how long it has
	// to be.
	IdleThreshold float64       `mapstructure:"idle_threshold"`
	IdleFor       time.Duration `mapstructure:"idle_for"`
	// FlushInterval is the time between two writes of the state, and two emissions.
	FlushInterval time.Duration `mapstructure:"flush_interval"`
	// MaxRows is how many rows there are; more are added up in the service _other.
	MaxRows int `mapstructure:"max_rows"`
	// MaxDevices is how many boards are accounted for.
	MaxDevices int `mapstructure:"max_devices"`
	// Storage is the storage extension that keeps the state across restarts; nil: it is kept
	// in memory alone.
	Storage *component.ID `mapstructure:"storage"`
}

// TenantConfig is where the tenant of a device is found.
type TenantConfig struct {
	// From are resource attributes; the first that is there decides.
	From []string `mapstructure:"from"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		Currency:      "USD",
		Tenant:        TenantConfig{From: []string{names.K8sNamespaceName}},
		MIGShare:      share.ByCompute,
		VGPUShare:     share.VGPUByMemory,
		Per:           PerService,
		EnergySplit:   SplitByShare,
		AllocationTTL: defaultAllocationTTL,
		Bridge:        defaultBridge,
		IdleThreshold: defaultIdleThreshold,
		IdleFor:       defaultIdleFor,
		FlushInterval: defaultFlushInterval,
		MaxRows:       defaultMaxRows,
		MaxDevices:    defaultMaxDevices,
	}
}

// Unmarshal implements confmap.Unmarshaler. An unknown key and a duration without a unit
// are errors.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	if _, err := prices.New(c.Currency, c.Prices); err != nil {
		errs = append(errs, err)
	} else if c.PricesFile != "" && len(c.Prices) == 0 {
		errs = append(errs, c.validatePricesFile())
	}
	if len(c.Prices) > 0 && c.PricesFile != "" {
		errs = append(errs, errors.New("prices_file: prices is set too: put the rules into one of them"))
	}
	if _, err := prices.NewBudgets(c.Budgets); err != nil {
		errs = append(errs, err)
	}
	if c.Carbon != nil {
		if _, err := prices.NewCarbon(*c.Carbon); err != nil {
			errs = append(errs, err)
		}
	}
	if i := slices.IndexFunc(c.Tenant.From, func(key string) bool { return strings.TrimSpace(key) == "" }); i >= 0 {
		errs = append(errs, fmt.Errorf("tenant::from::%d: is empty: name a resource attribute, such as %s", i, names.K8sNamespaceName))
	}
	errs = append(errs, c.validateShares()...)
	errs = append(errs, c.validateTimes()...)
	if c.MaxRows <= 0 {
		errs = append(errs, fmt.Errorf("max_rows: %d: set it to 1 or more; the default is %d", c.MaxRows, defaultMaxRows))
	}
	if c.MaxDevices <= 0 {
		errs = append(errs, fmt.Errorf("max_devices: %d: set it to 1 or more; the default is %d", c.MaxDevices, defaultMaxDevices))
	}
	return errors.Join(errs...)
}

func (c *Config) validateShares() (errs []error) {
	errs = append(errs, c.validateEnergySplit()...)
	switch c.MIGShare {
	case share.ByCompute, share.ByMemory, share.ByMean:
	default:
		errs = append(errs, fmt.Errorf("mig_share: %q: use %s, %s or %s", c.MIGShare, share.ByCompute, share.ByMemory, share.ByMean))
	}
	if c.VGPUShare != share.VGPUByMemory && c.VGPUShare != share.VGPUByCores {
		errs = append(errs, fmt.Errorf("vgpu_share: %q: use %s or %s", c.VGPUShare, share.VGPUByMemory, share.VGPUByCores))
	}
	if c.Per != PerService && c.Per != PerPod {
		errs = append(errs, fmt.Errorf("per: %q: use %s or %s", c.Per, PerService, PerPod))
	}
	for _, model := range slices.Sorted(maps.Keys(c.MIGSlices)) {
		const most = 64
		s := c.MIGSlices[model]
		if s.Compute < 1 || s.Compute > most || s.Memory < 1 || s.Memory > most {
			errs = append(errs, fmt.Errorf("mig_slices::%s: compute %d, memory %d: set both to how many slices the board has, 1 to %d", model, s.Compute, s.Memory, most))
		}
	}
	return errs
}

func (c *Config) validateEnergySplit() (errs []error) {
	const most = 2000
	switch {
	case c.EnergySplit != SplitByShare && c.EnergySplit != SplitByActivity:
		errs = append(errs, fmt.Errorf("energy_split: %q: use %s or %s", c.EnergySplit, SplitByShare, SplitByActivity))
	case c.EnergySplit == SplitByActivity && len(c.IdleWatts) == 0:
		errs = append(errs, fmt.Errorf("idle_watts: is empty: write the watts of an idle board for each model, such as {H100: 70}, or set energy_split to %s", SplitByShare))
	case c.EnergySplit == SplitByShare && len(c.IdleWatts) > 0:
		errs = append(errs, fmt.Errorf("idle_watts: energy is split by share: set energy_split to %s, or remove it", SplitByActivity))
	}
	for _, model := range slices.Sorted(maps.Keys(c.IdleWatts)) {
		if watts := c.IdleWatts[model]; !(watts > 0 && watts <= most) {
			errs = append(errs, fmt.Errorf("idle_watts::%s: %v: write watts, above 0 and up to %d", model, watts, most))
		}
	}
	return errs
}

// idleWatts is ledger.Config.IdleWatts: of the longest key that is a part of the model.
func (c *Config) idleWatts() func(*ledger.Class) (milliwatts int64, ok bool) {
	if c.EnergySplit != SplitByActivity {
		return nil
	}
	models := slices.Collect(maps.Keys(c.IdleWatts))
	slices.SortFunc(models, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return func(class *ledger.Class) (int64, bool) {
		i := slices.IndexFunc(models, func(model string) bool { return share.NamesModel(class.Model, model) })
		if i < 0 {
			return 0, false
		}
		return int64(c.IdleWatts[models[i]] * 1000), true
	}
}

func (c *Config) validateTimes() (errs []error) {
	for _, d := range []struct {
		key         string
		value       time.Duration
		least, most time.Duration
	}{
		{"allocation_ttl", c.AllocationTTL, 30 * time.Second, time.Hour},
		{"bridge", c.Bridge, c.AllocationTTL, 24 * time.Hour},
		{"staleness", cmp.Or(c.Staleness, time.Minute), time.Second, time.Hour}, // 0 is valid
		{"idle_for", c.IdleFor, time.Minute, time.Hour},
		{"flush_interval", c.FlushInterval, 10 * time.Second, 4 * time.Minute}, // Prometheus looks back for five
	} {
		if d.value < d.least || d.value > d.most {
			errs = append(errs, fmt.Errorf("%s: %s: set it to %s or more, and to %s at most", d.key, d.value, d.least, d.most))
		}
	}
	if !(c.IdleThreshold > 0 && c.IdleThreshold < 1) {
		errs = append(errs, fmt.Errorf("idle_threshold: %v: it is a fraction: set it between 0 and 1; the default is %v", c.IdleThreshold, defaultIdleThreshold))
	}
	return errs
}
