// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package queries // import "github.com/otelcol-gpu/otelcol-gpu/internal/queries"

import (
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// serviceFigure is a metric of services and the labels by which it has a series for each of
// them.
type serviceFigure struct {
	metric, label string
	values        []string
}

// serviceStates are the figures that decide about the state of a service, serviceAverages the
// others.
var (
	serviceStates = []serviceFigure{
		{metric: ServicePods, label: StateOfPod, values: []string{"reporting", "degraded", "missing", "warming", "not_running"}},
		{metric: ServicePending}, {metric: ServiceIdle}, {metric: ServicePartial}, {metric: ServiceDataAge},
	}
	serviceAverages = []serviceFigure{
		{metric: ServiceDevices, label: StateOfDevice, values: []string{"reporting", "missing"}},
		{metric: ServiceUtilization}, {metric: ServiceUtilizationMin}, {metric: ServiceUtilizationMax}, {metric: ServiceSM}, {metric: ServiceDRAM},
		{metric: ServicePipe, label: Pipe, values: []string{"tensor", "fp16", "fp32"}},
		{metric: ServicePodMemory}, {metric: ServicePodLimit}, {metric: ServicePodPower}, {metric: ServiceMemory}, {metric: ServiceLimit}, {metric: ServicePower},
		{metric: ServiceMissingRatio},
	}
)

// deviceMetrics are the gauges of a device.
var deviceMetrics = []string{
	Utilization, MemoryUsage, MemoryLimit, PipeActive, SMActive, DRAMActive, Power, PowerLimit, Temperature, Throttle, XIDLast,
}

// serviceIdentity names a service, deviceIdentity a device; identity is all that
// is known of a device, its place and its owner.
var (
	serviceIdentity = OfServices.by()
	deviceIdentity  = by(Cluster, Device)
	identity        = by(Cluster, Node, Host, Address, Device, Parent, Model, Index, MIGProfile, MIGInstance, Partition, PartitionMode, Namespace, Pod, Container, Service, SlurmCluster, Account, SlurmJob, SlurmUser, SlurmPartition)
)

// rememberedStep is less than any store's lookback, so that timestamp() misses no
// last sample.
const rememberedStep = 4 * time.Minute

// ServiceStates asks for the figures that decide about the state of services, and ServiceAverages
// for their other figures. An answer to one query has no more series than there are services: a
// store limits how many that may be.
func ServiceStates(s Selector) []string   { return ofFigures(serviceStates, s) }
func ServiceAverages(s Selector) []string { return ofFigures(serviceAverages, s) }

func ofFigures(figures []serviceFigure, s Selector) (all []string) {
	for _, f := range figures {
		if f.label == "" {
			all = append(all, of(f.metric, s))
		}
		for _, value := range f.values {
			all = append(all, of(f.metric, s, Is(f.label, value)))
		}
	}
	return all
}

// ServicesEvaluated asks when services were last evaluated, in seconds since 1970.
func ServicesEvaluated(s Selector) string {
	return "max" + serviceIdentity + "(timestamp(" + of(ServicePods, s, Is(StateOfPod, "reporting")) + "))"
}

// NewestEvaluations asks when any service of a cluster was last evaluated.
func NewestEvaluations(s Selector) string {
	return "max" + by(Cluster) + "(timestamp(" + of(ServicePods, s, Is(StateOfPod, "reporting")) + "))"
}

// LastEvaluation asks when any service was last evaluated within a time.
func LastEvaluation(s Selector, within time.Duration) string {
	return "max(max_over_time(timestamp(" + of(ServicePods, s, Is(StateOfPod, "reporting")) + ")" + subquery(within) + "))"
}

// Thresholds asks for the settings of gpu_summary, by their names; the largest where
// clusters differ.
func Thresholds() string {
	settings := []string{SummaryWarmup, SummaryPartialThreshold, SummaryIdleThreshold, SummaryIdleFor}
	return "max" + by(model.MetricNameLabel) + "(" + anyOf(settings, All) + ")"
}

// PodStates asks which pods are in which state: 1 for the one that a pod is in.
func PodStates(s Selector) string { return of(PodState, s) }

// MissingPods asks for those that are missing.
func MissingPods(s Selector) string { return of(PodState, s, Is(StateOfPod, "missing")) + " == 1" }

// DeviceUtilization asks for the utilization of devices.
func DeviceUtilization(s Selector) string { return general(s) }

// DeviceUtilizationTime asks of when that is.
func DeviceUtilizationTime(s Selector) string { return "timestamp(" + general(s) + ")" }

// UtilizationPeak asks for the highest utilization of devices within a time, by their owners.
func UtilizationPeak(s Selector, within time.Duration) string {
	return "max" + identity + "(max_over_time(" + general(s) + "[" + duration(within) + "]))"
}

// OwnersBefore asks which owners devices had a time ago.
func OwnersBefore(s Selector, ago time.Duration) string {
	return "count" + identity + "(" + general(s) + " offset " + duration(ago) + ")"
}

// Allocations asks who holds which share of which device; AllocationTimes of when
// that is.
func Allocations(s Selector) string     { return of(Allocation, s) }
func AllocationTimes(s Selector) string { return "timestamp(" + of(Allocation, s) + ")" }

// Exporters asks for the states of exporters and nodes.
func Exporters(s Selector) string {
	return anyOf([]string{ExporterUp, Frozen, Unrecognized, Schedulable, Reconfiguring, Released}, s)
}

// ExporterTimes asks when exporters were last seen, NodeTimes when nodes were.
func ExporterTimes(s Selector) string { return "timestamp(" + of(ExporterUp, s) + ")" }
func NodeTimes(s Selector) string     { return "timestamp(" + of(Schedulable, s) + ")" }

// ExportersRemembered asks when exporters were last seen within a time.
func ExportersRemembered(s Selector, within time.Duration) string {
	return "max_over_time(timestamp(" + of(ExporterUp, s) + ")" + subquery(within) + ")"
}

// ExportersMoved asks when the values of exporters last moved within a time: when
// they were not frozen.
func ExportersMoved(s Selector, within time.Duration) string {
	return "max_over_time(timestamp(" + of(Frozen, s) + " == 0)[" + duration(within) + ":1m])"
}

// DeviceValues asks for the gauges of devices.
func DeviceValues(s Selector) string { return anyOf(deviceMetrics, s) }

// RecentDeviceValues asks for those of a time, whether or not their series ended.
func RecentDeviceValues(s Selector, within time.Duration) string {
	return "last_over_time(" + anyOf(deviceMetrics, s) + "[" + duration(within) + "])"
}

// OfDevices asks for a figure of devices that is no older than a time.
func OfDevices(metric string, s Selector, maxAge time.Duration) string {
	return "max" + deviceIdentity + "(" + within(of(metric, s), maxAge) + ")"
}

// Capacity asks for the memory that devices had within a time, silent ones too.
func Capacity(s Selector, within time.Duration) string {
	return remembered(of(MemoryLimit, s), within)
}

// Gone asks of which devices a figure was there within a time, and is not any more,
// or is older than a shorter one.
func Gone(metric string, s Selector, maxAge, within time.Duration) string {
	return remembered(of(metric, s), within) + " unless " + OfDevices(metric, s, maxAge)
}

// remembered is the highest value of devices within a time. What began after the
// last step is found by its samples.
func remembered(series string, within time.Duration) string {
	step := min(rememberedStep, within)
	return "max" + deviceIdentity + "(max_over_time(" + series + subquery(within) + ") or max_over_time(" + series + "[" + duration(step) + "]))"
}

// xidIdentity names a counter of XIDs, regardless of the device's owner.
var xidIdentity = by(Cluster, Device, XIDCode, XIDDerived)

// XIDRise asks how often XIDs were counted within a time. A counter that begins
// within it rises from its first value: XIDFirst asks for that.
func XIDRise(s Selector, within time.Duration) string {
	return rise(of(XIDErrors, s), xidIdentity, within)
}

// XIDFirst asks for the lowest value of counters of XIDs within a time: the first
// one, unless they were reset.
func XIDFirst(s Selector, within time.Duration) string {
	return "min" + xidIdentity + "(min_over_time(" + of(XIDErrors, s) + "[" + duration(within) + "]))"
}

// XIDBegan asks when counters of XIDs began within a time. The answer is the last sample
// within the minute of the first one: XIDBeganExactly asks within that minute.
func XIDBegan(s Selector, within time.Duration) string {
	return "min" + xidIdentity + "(" + first(of(XIDErrors, s), within, time.Minute) + ")"
}
func XIDBeganExactly(s Selector) string {
	return "min" + xidIdentity + "(" + first(of(XIDErrors, s), time.Minute, time.Second) + ")"
}

// XIDBefore asks which counters of XIDs there were a time ago.
func XIDBefore(s Selector, ago time.Duration) string {
	return "count" + xidIdentity + "(" + of(XIDErrors, s) + " offset " + duration(ago) + ")"
}

// first asks for the time of the first sample that a grid finds, and of what began after its
// last line.
func first(series string, within, step time.Duration) string {
	return "min_over_time(timestamp(" + series + ")[" + duration(within) + ":" + duration(step) + "]) or timestamp(" + series + ")"
}

// rise asks for the rise of counters within a time, of all their samples: increase()
// extrapolates, and is asked only where a counter was reset.
func rise(series, identity string, within time.Duration) string {
	window := series + "[" + duration(within) + "]"
	return "((max" + identity + "(max_over_time(" + window + ")) - min" + identity + "(min_over_time(" + window + "))) unless (sum" + identity +
		"(resets(" + window + ")) > 0)) or round(sum" + identity + "(increase(" + window + ")))"
}

// UncorrectedRise asks how many uncorrected errors were counted within a time.
func UncorrectedRise(s Selector, within time.Duration) string {
	return rise(of(HwErrors, Is(ErrorType, "uncorrected"), s), deviceIdentity, within)
}

// FaultsNow asks which devices have a state that is 1 now, by reason where it has
// one; LastXIDs for the last XID of devices.
func FaultsNow(metric string, s Selector, maxAge time.Duration) string {
	return "max" + by(Cluster, Device, Reason) + "(" + within(of(metric, s), maxAge) + " == 1)"
}
func LastXIDs(s Selector) string { return "max" + deviceIdentity + "(" + of(XIDLast, s) + ")" }

// UncorrectedCounted asks which devices have counted uncorrected errors since
// their driver was loaded.
func UncorrectedCounted(s Selector) string {
	return "max" + deviceIdentity + "(" + of(HwErrors, Is(ErrorType, "uncorrected"), s) + ") > 0"
}

// Ever are selectors of which at least one has series if there ever was any GPU
// telemetry.
func Ever() []string {
	return []string{general(), of(MemoryUsage), of(Allocation), of(ExporterUp), of(ServicePods)}
}

// Trend asks for the mean utilization of services.
func Trend(s Selector, how Smooth) string { return how.read(of(ServiceUtilization, s)) }

// Smooth is how a chart reads a series: over is what one value stands for.
// A value is the mean over a step, and no less than what may lie between two
// samples: so nothing bridges a gap.
type Smooth struct {
	Step time.Duration
	Gap  time.Duration // a longer time between two samples is a gap
}

func (s Smooth) read(series string) string {
	if s.Step > s.Gap {
		return "avg_over_time(" + series + "[" + duration(s.Step) + "])"
	}
	return within(series, s.Gap) // which ends with its series
}

// ServiceChart asks for a figure of one service.
func ServiceChart(metric string, s Selector, how Smooth) string {
	return "max" + serviceIdentity + "(" + how.read(of(metric, s)) + ")"
}

// PodsInMean asks how many pods are in a service's averages.
func PodsInMean(s Selector, how Smooth) string {
	states := OneOf(StateOfPod, "reporting", "degraded")
	return "round(sum" + serviceIdentity + "(" + how.read(of(ServicePods, s, states)) + "))"
}

// PodMean and PodSum ask for a figure of every pod of a service, the mean or the
// sum over its devices.
func PodMean(u Unit, metric string, s Selector, how Smooth) string {
	return u.of("avg", metric, s, how)
}
func PodSum(u Unit, metric string, s Selector, how Smooth) string {
	return u.of("sum", metric, s, how)
}

// Unit is the labels of what a service consists of; the first one must be there.
type Unit []string

// On Kubernetes it is a pod, on Slurm the part of a job on a node.
var (
	UnitPod = Unit{Pod}
	UnitJob = Unit{SlurmJob, Node}
)

func (u Unit) of(aggregate, metric string, s Selector, how Smooth) string {
	return aggregate + by(u...) + "(max" + by(append(u[:len(u):len(u)], Device)...) + "(" + how.read(of(metric, s, Selector(u[0]+`!=""`))) + "))"
}

// DeviceChart asks for a figure of devices: one line each, regardless of their owners.
// Series that live side by side (a reason each, as of throttling) are read by their
// labels, and the highest of them is taken.
func DeviceChart(metric string, s Selector, how Smooth, labels ...string) string {
	series, identity := of(metric, s), by(append([]string{Cluster, Device}, labels...)...)
	one := "max" + identity + "(" + within(series, how.Gap) + ")"
	if how.Step > how.Gap {
		// The mean of all samples of a step: an owner's change splits none of it.
		over := "[" + duration(how.Step) + "]))"
		one = "(sum" + identity + "(sum_over_time(" + series + over + " / sum" + identity + "(count_over_time(" + series + over + ")"
	}
	if len(labels) == 0 {
		return one
	}
	return "max" + deviceIdentity + "(" + one + ")"
}

// TelemetryBefore asks how much telemetry there was a time ago: nothing, where there was none.
func TelemetryBefore(ago time.Duration) string {
	return "count(" + anyOf([]string{ExporterUp, MemoryUsage, ServicePods}, All) + " offset " + duration(ago) + ")"
}

// HeldDown are the reasons for which clocks are below what the load could use: not
// because there is none, or because that is how they were set.
const HeldDown = Selector(Reason + `!~"gpu_idle|clocks_setting|display_clocks"`)

// PodActivity asks for the mean utilization of pods within a time, to know the busiest.
func PodActivity(u Unit, s Selector, within time.Duration) string {
	step := max(within/20, 15*time.Second)
	return "avg" + by(u...) + "(avg_over_time(" + general(s, Selector(u[0]+`!=""`)) + "[" + duration(within) + ":" + duration(step) + "]))"
}

// within is a series without what is older than a time.
func within(series string, maxAge time.Duration) string {
	return "(" + series + " and (time() - timestamp(" + series + ") <= " + number(maxAge.Seconds()) + "))"
}

func subquery(within time.Duration) string {
	return "[" + duration(within) + ":" + duration(min(rememberedStep, within)) + "]"
}

// Longest is how long the text of a query may be with which servers are asked.
const Longest = 16 << 10

// Fits is a selector, or all if that would be too long to ask for.
func Fits(s Selector) Selector {
	if len(s) > Longest || strings.Count(string(s), "|") > 1000 {
		return All
	}
	return s
}
