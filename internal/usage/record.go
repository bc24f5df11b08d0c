// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Limits of a row.
const (
	MaxText   = 256  // runes of a text
	MaxLabels = 4096 // runes of Labels

	hourMS = 3_600_000
	// Of one hour; a day is the sum of 24.
	maxGPUs  = 1_000_000
	maxMJ    = 1 << 56
	maxUG    = 1 << 56
	maxMoney = 1_000_000_000_000 // units of the currency
)

var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// text and number are fields with the attributes that carry them.
type text struct {
	name  string
	value *string
}

type number struct {
	name     string
	value    *int64
	optional bool
	most     int64
}

// lateText and what follows is no part of an ID where it is empty: older rows had none.
const lateText = 15

// texts are in the order of ID, which must not change.
func (k *Key) texts() [16]text {
	namespace := names.K8sNamespaceName
	if k.SlurmCluster != "" {
		namespace = names.ServiceNamespace
	}
	return [...]text{
		{names.K8sClusterName, &k.Cluster}, {names.HwModel, &k.Model}, {names.HostType, &k.HostType}, {names.CloudRegion, &k.Region},
		{names.GPUCapacityType, &k.CapacityType}, {names.GPUNodePool, &k.NodePool}, {names.GPUNodeLabels, &k.Labels},
		{names.GPUMIGProfile, &k.Profile}, {names.GPUCapacityState, &k.State}, {namespace, &k.Namespace},
		{names.ServiceName, &k.Service}, {names.GPUTenant, &k.Tenant}, {names.K8sPodName, &k.Pod}, {names.GPUCostCurrency, &k.Currency}, {names.GPUPriceKind, &k.Kind},
		{names.SlurmClusterName, &k.SlurmCluster},
	}
}

// numbers are the whole numbers that every row has. Those that are optional are absent
// where they are 0.
func (r *Row) numbers() [10]number {
	hours := int64(1)
	if r.Day {
		hours = 24
	}
	time, energy := hours*hourMS*maxGPUs, hours*maxMJ
	return [...]number{
		{names.GPUUsageTime, &r.Time, false, time},
		{names.GPUUsageUsed, &r.Used, false, r.Time}, {names.GPUUsageIdle, &r.Idle, false, r.Time}, {names.GPUUsageUnmeasured, &r.Unmeasured, false, r.Time},
		{names.GPUUsageUnplaced, &r.Unplaced, false, time},
		{names.GPUUsageEnergyBoard, &r.Energy[0], true, energy}, {names.GPUUsageEnergyShare, &r.Energy[1], true, energy}, {names.GPUUsageEnergyIntegrated, &r.Energy[2], true, energy},
		{names.GPUPriceNano, &r.RateNano, true, math.MaxInt64}, {names.GPUPricePer, &r.RatePer, true, math.MaxInt64},
	}
}

func (r *Row) flags() [4]struct {
	name  string
	value *bool
} {
	return [...]struct {
		name  string
		value *bool
	}{{names.GPUUsageContested, &r.Contested}, {names.GPUUsageBoardMetered, &r.BoardMetered}, {names.GPUUsageEstimated, &r.Estimated}, {names.GPUUsageMarginal, &r.Marginal}}
}

// Validate returns why a row cannot be one, by the attribute that is wrong.
func (r *Row) Validate() error {
	if err := r.Key.Validate(); err != nil {
		return err
	}
	return r.ValidateAmounts()
}

// Validate returns why a key cannot be one.
func (k *Key) Validate() error {
	for _, t := range k.texts() {
		limit := MaxText
		if t.value == &k.Labels {
			limit = MaxLabels
		}
		if safetext.Strip(*t.value, limit) != *t.value {
			return fmt.Errorf("%s: longer than %d characters, or not all of them can be shown", t.name, limit)
		}
	}
	switch {
	case k.State != Held && k.State != Free && k.State != Stranded && k.State != Unavailable && k.State != Unknown:
		return fmt.Errorf("%s: %q is not known", names.GPUCapacityState, k.State)
	case k.RateNano < 0:
		return fmt.Errorf("%s: %d is below 0", names.GPUPriceNano, k.RateNano)
	case k.RatePer < 0 || k.RatePer > math.MaxInt64/hourMS:
		return fmt.Errorf("%s: %d is not within 0 and %d", names.GPUPricePer, k.RatePer, int64(math.MaxInt64/hourMS))
	case k.RatePer == 0 && (k.RateNano != 0 || k.Kind != ""):
		return fmt.Errorf("%s: is missing, and there is a price", names.GPUPricePer)
	case k.RatePer > 0 && k.Kind != prices.KindList && k.Kind != prices.KindContracted:
		return fmt.Errorf("%s: %q is not known", names.GPUPriceKind, k.Kind)
	case k.RatePer > 0 && k.Currency == "":
		return fmt.Errorf("%s: is missing, and there is a price", names.GPUCostCurrency)
	}
	return nil
}

// ValidateAmounts is Validate for a row with a key that is valid.
func (r *Row) ValidateAmounts() error {
	for _, n := range r.numbers() {
		if *n.value < 0 || *n.value > n.most {
			return fmt.Errorf("%s: %d is not within 0 and %d", n.name, *n.value, n.most)
		}
	}
	step, hours := int64(3600), int64(1)
	if r.Day {
		step, hours = 24*3600, 24
	}
	switch {
	case r.Hour.Before(earliest) || !r.Hour.Before(latest) || r.Hour.Unix()%step != 0 || r.Hour.Nanosecond() != 0:
		return fmt.Errorf("the time %s is not the start of an hour in UTC", r.Hour.Format(time.RFC3339Nano))
	case r.Carbon < -1 || r.Carbon > maxUG*hours:
		return fmt.Errorf("%s: %d is not within 0 and %d", names.GPUUsageCarbon, r.Carbon, maxUG*hours)
	case r.Revision == 0 && !r.Open:
		return fmt.Errorf("%s: is missing, and the row is closed", names.GPUUsageRevision)
	case r.RatePer > 0 && r.Rate().Money(r.Time).Whole > maxMoney*hours:
		return fmt.Errorf("%s: %d for %d ms is more money than there can be", names.GPUPriceNano, r.RateNano, r.Time)
	}
	return nil
}

// ToRecord writes the row into an empty log record.
func (r *Row) ToRecord(record plog.LogRecord) {
	record.SetEventName(names.UsageHour)
	if r.Open {
		record.SetEventName(names.UsageOpen)
	}
	record.SetTimestamp(pcommon.NewTimestampFromTime(r.Hour))
	record.SetSeverityNumber(plog.SeverityNumberInfo)
	attrs := record.Attributes()
	attrs.EnsureCapacity(35)
	attrs.PutStr(names.GPUEventID, r.ID())
	attrs.PutInt(names.GPUUsageRevision, int64(r.Revision))
	for _, t := range r.texts() {
		if *t.value != "" {
			attrs.PutStr(t.name, *t.value)
		}
	}
	for _, n := range r.numbers() {
		if *n.value != 0 || !n.optional {
			attrs.PutInt(n.name, *n.value)
		}
	}
	if r.Carbon >= 0 {
		attrs.PutInt(names.GPUUsageCarbon, r.Carbon)
	}
	for _, f := range r.flags() {
		if *f.value {
			attrs.PutBool(f.name, true)
		}
	}
}

// FromRecord reads a row from a log record with the name of one. A row that cannot be
// true is an error, and none of it may be counted.
func FromRecord(record plog.LogRecord) (Row, error) {
	r := Row{Hour: record.Timestamp().AsTime(), Open: record.EventName() == names.UsageOpen, Amounts: Amounts{Carbon: -1}}
	attrs := record.Attributes()
	if v, found := attrs.Get(names.SlurmClusterName); found {
		r.SlurmCluster = v.Str() // it decides what the namespace is called
	}
	for _, t := range r.texts() {
		v, found := attrs.Get(t.name)
		if !found {
			continue
		}
		if v.Type() != pcommon.ValueTypeStr {
			return Row{}, fmt.Errorf("%s: is %s and no text", t.name, v.Type())
		}
		*t.value = v.Str()
	}
	revision := int64(0)
	numbers := r.numbers()
	wanted := append(numbers[:], number{names.GPUUsageRevision, &revision, true, 0}, number{names.GPUUsageCarbon, &r.Carbon, true, 0})
	for _, n := range wanted {
		v, found := attrs.Get(n.name)
		if !found && n.optional {
			continue
		}
		if !found || v.Type() != pcommon.ValueTypeInt {
			return Row{}, fmt.Errorf("%s: is no whole number", n.name)
		}
		*n.value = v.Int()
	}
	for _, f := range r.flags() {
		v, found := attrs.Get(f.name)
		if found && v.Type() != pcommon.ValueTypeBool {
			return Row{}, fmt.Errorf("%s: is %s and no boolean", f.name, v.Type())
		}
		*f.value = found && v.Bool()
	}
	if revision < 0 || revision > math.MaxUint32 {
		return Row{}, fmt.Errorf("%s: %d is not within 0 and %d", names.GPUUsageRevision, revision, uint32(math.MaxUint32))
	}
	r.Revision = uint32(revision)
	if err := r.Validate(); err != nil {
		return Row{}, err
	}
	return r, nil
}
