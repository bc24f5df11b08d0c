// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpucostconnector/internal/ledger"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series is a series of a key: of which metric, and with which attribute of its own.
type series struct {
	metric      *names.Metric
	attr, value string
}

// attribute is one of a key; empty ones are left out.
type attribute struct{ name, value string }

// identity is the resource of a point, on which it is repeated, as gpu_summary does.
type identity struct{ cluster, slurm, namespace, service string }

// attributes of a job have its account as the namespace of its service.
func (i identity) attributes() [4]attribute {
	if i.slurm != "" {
		return [...]attribute{{names.K8sClusterName, i.cluster}, {names.SlurmClusterName, i.slurm}, {names.ServiceNamespace, i.namespace}, {names.ServiceName, i.service}}
	}
	return [...]attribute{{names.K8sClusterName, i.cluster}, {names.K8sNamespaceName, i.namespace}, {names.ServiceName, i.service}, {}}
}

type usageKey struct {
	identity
	pod, tenant, model, profile, capacity string
}

func usageOf(k *ledger.Key) usageKey {
	return usageKey{identity{k.Cluster, k.SlurmCluster, k.Namespace, k.Service}, k.Pod, k.Tenant, k.Model, k.Profile, k.Capacity}
}

func (k usageKey) of() identity { return k.identity }

func (k usageKey) attributes() []attribute {
	return []attribute{{names.K8sPodName, k.pod}, {names.GPUTenant, k.tenant}, {names.HwModel, k.model}, {names.GPUMIGProfile, k.profile}, {names.GPUCapacityType, k.capacity}}
}

func (k usageKey) compare(l usageKey) int {
	return cmp.Or(k.identity.compare(l.identity), cmp.Compare(k.pod, l.pod), cmp.Compare(k.tenant, l.tenant),
		cmp.Compare(k.model, l.model), cmp.Compare(k.profile, l.profile), cmp.Compare(k.capacity, l.capacity))
}

func (i identity) compare(j identity) int {
	return cmp.Or(cmp.Compare(i.cluster, j.cluster), cmp.Compare(i.slurm, j.slurm), cmp.Compare(i.namespace, j.namespace), cmp.Compare(i.service, j.service))
}

// usageSeries and those below are in the order of the numbers of values.
func (usageKey) series() []series { return usageSeries }

var usageSeries = []series{
	held: {metric: &names.UsageHeld}, used: {metric: &names.UsageUsed}, idle: {metric: &names.UsageIdle},
	unmeasured: {metric: &names.UsageUnmeasured}, unplaced: {metric: &names.UsageUnplaced},
	cost: {metric: &names.UsageCost}, idleCost: {metric: &names.UsageIdleCost},
	energy: byBasis(&names.UsageEnergy, 0), energy + 1: byBasis(&names.UsageEnergy, 1), energy + 2: byBasis(&names.UsageEnergy, 2),
	carbon: {metric: &names.UsageCarbon},
}

func byBasis(m *names.Metric, b ledger.Basis) series {
	return series{m, names.GPUEnergyBasis, b.String()}
}

type capacityKey struct {
	cluster, model, capacity string
	state                    ledger.State
}

func (k capacityKey) of() identity { return identity{cluster: k.cluster} }

func (k capacityKey) attributes() []attribute {
	return []attribute{{names.HwModel, k.model}, {names.GPUCapacityType, k.capacity}, {names.GPUCapacityState, k.state.String()}}
}

func (k capacityKey) compare(l capacityKey) int {
	return cmp.Or(cmp.Compare(k.cluster, l.cluster), cmp.Compare(k.model, l.model), cmp.Compare(k.capacity, l.capacity), cmp.Compare(k.state, l.state))
}

func (capacityKey) series() []series { return capacitySeries }

var capacitySeries = []series{
	held: {metric: &names.CapacityTime}, cost: {metric: &names.CapacityCost},
	energy: byBasis(&names.CapacityEnergy, 0), energy + 1: byBasis(&names.CapacityEnergy, 1), energy + 2: byBasis(&names.CapacityEnergy, 2),
}

// ofCapacity are the numbers in capacitySeries.
const ofCapacity = 1<<held | 1<<cost | 7<<energy

// Price is what the price of a GPU is shown by.
type Price struct{ Cluster, Region, Model, HostType, Capacity string }

func (k Price) of() identity { return identity{cluster: k.Cluster} }

func (k Price) attributes() []attribute {
	return []attribute{{names.CloudRegion, k.Region}, {names.HwModel, k.Model}, {names.HostType, k.HostType}, {names.GPUCapacityType, k.Capacity}}
}

func (k Price) compare(l Price) int {
	return cmp.Or(cmp.Compare(k.Cluster, l.Cluster), cmp.Compare(k.Region, l.Region), cmp.Compare(k.Model, l.Model),
		cmp.Compare(k.HostType, l.HostType), cmp.Compare(k.Capacity, l.Capacity))
}

func (Price) series() []series { return priceSeries }

var priceSeries = []series{{metric: &names.GPUPrice}}

type budgetKey struct{ name, kind string }

func (budgetKey) of() identity { return identity{} }

func (k budgetKey) attributes() []attribute {
	return []attribute{{names.GPUBudgetName, k.name}, {names.GPUBudgetKind, k.kind}}
}

func (k budgetKey) compare(l budgetKey) int {
	return cmp.Or(cmp.Compare(k.name, l.name), cmp.Compare(k.kind, l.kind))
}

func (budgetKey) series() []series { return budgetSeries }

var budgetSeries = []series{{metric: &names.BudgetUsed}}

// limitKey is a budget with what its limit is of.
type limitKey struct {
	budgetKey
	tenant, period, timezone string
}

func (k limitKey) attributes() []attribute {
	return append(k.budgetKey.attributes(), attribute{names.GPUTenant, k.tenant}, attribute{names.GPUBudgetPeriod, k.period}, attribute{names.GPUBudgetTimezone, k.timezone})
}

func (k limitKey) compare(l limitKey) int {
	return cmp.Or(k.budgetKey.compare(l.budgetKey), cmp.Compare(k.tenant, l.tenant), cmp.Compare(k.period, l.period), cmp.Compare(k.timezone, l.timezone))
}

func (limitKey) series() []series { return limitSeries }

// Numbers in limitSeries.
const (
	limitCost = iota
	limitTime
)

var limitSeries = []series{limitCost: {metric: &names.BudgetLimitCost}, limitTime: {metric: &names.BudgetLimitTime}}

// hasMoney reports whether the values of a metric are in the currency.
func hasMoney(m *names.Metric) bool {
	switch m {
	case &names.UsageCost, &names.UsageIdleCost, &names.CapacityCost, &names.GPUPrice, &names.BudgetLimitCost:
		return true
	}
	return false
}

func put(attrs pcommon.Map, all []attribute) {
	for _, a := range all {
		if a.value != "" {
			attrs.PutStr(a.name, a.value)
		}
	}
}
