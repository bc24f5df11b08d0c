// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series is one series of a service: a metric with one value of its attribute.
// Series of one metric follow each other.
type series uint8

const (
	serUtilization series = iota
	serSMActive
	serDRAMActive
	serTensorActive
	serFP16Active
	serFP32Active
	serPodMemoryUsage
	serPodMemoryLimit
	serPodPower
	serMemoryUsage
	serMemoryLimit
	serPower
	serUtilizationMin
	serUtilizationMax
	serMeanDevices
	serPodsReporting // the states of pods, in the order of podState
	serPodsDegraded
	serPodsMissing
	serPodsWarming
	serPodsNotRunning
	serPodsPending
	serDevicesReporting
	serDevicesMissing
	serIdleDevices
	serMissingRatio
	serPartial
	serDataAge
	numSeries
)

// seriesSet is a set of series, one bit each.
type seriesSet uint32

func (s seriesSet) has(x series) bool { return s&(1<<x) != 0 }

// output is how a series is written.
type output struct {
	metric          *names.Metric
	attr, attrValue string
}

var podStateNames = [numPodStates]string{
	reporting:  "reporting",
	degraded:   "degraded",
	missing:    "missing",
	warming:    "warming",
	notRunning: "not_running",
}

var outputs = [numSeries]output{
	serUtilization:      {metric: &names.ServiceUtilization},
	serSMActive:         {metric: &names.ServiceSMActive},
	serDRAMActive:       {metric: &names.ServiceDRAMActive},
	serTensorActive:     {&names.ServicePipeActive, names.GPUPipe, pipeTensor},
	serFP16Active:       {&names.ServicePipeActive, names.GPUPipe, pipeFP16},
	serFP32Active:       {&names.ServicePipeActive, names.GPUPipe, pipeFP32},
	serPodMemoryUsage:   {metric: &names.ServicePodMemoryUsage},
	serPodMemoryLimit:   {metric: &names.ServicePodMemoryLimit},
	serPodPower:         {metric: &names.ServicePodPower},
	serMemoryUsage:      {metric: &names.ServiceMemoryUsage},
	serMemoryLimit:      {metric: &names.ServiceMemoryLimit},
	serPower:            {metric: &names.ServicePower},
	serUtilizationMin:   {metric: &names.ServiceUtilizationMin},
	serUtilizationMax:   {metric: &names.ServiceUtilizationMax},
	serMeanDevices:      {metric: &names.ServiceMeanDevices},
	serPodsReporting:    {&names.ServicePods, names.GPUPodState, podStateNames[reporting]},
	serPodsDegraded:     {&names.ServicePods, names.GPUPodState, podStateNames[degraded]},
	serPodsMissing:      {&names.ServicePods, names.GPUPodState, podStateNames[missing]},
	serPodsWarming:      {&names.ServicePods, names.GPUPodState, podStateNames[warming]},
	serPodsNotRunning:   {&names.ServicePods, names.GPUPodState, podStateNames[notRunning]},
	serPodsPending:      {metric: &names.ServicePodsPending},
	serDevicesReporting: {&names.ServiceDevices, names.GPUDeviceState, "reporting"},
	serDevicesMissing:   {&names.ServiceDevices, names.GPUDeviceState, "missing"},
	serIdleDevices:      {metric: &names.ServiceIdleDevices},
	serMissingRatio:     {metric: &names.ServiceMissingRatio},
	serPartial:          {metric: &names.ServicePartial},
	serDataAge:          {metric: &names.ServiceDataAge},
}

// means and sums name the series that a field is written to.
var (
	means = [numFields]series{
		utilization: serUtilization, smActive: serSMActive, dramActive: serDRAMActive,
		tensorActive: serTensorActive, fp16Active: serFP16Active, fp32Active: serFP32Active,
		memoryUsage: serPodMemoryUsage, memoryLimit: serPodMemoryLimit, power: serPodPower,
	}
	sums = map[field]series{memoryUsage: serMemoryUsage, memoryLimit: serMemoryLimit, power: serPower}
)

// serviceFigures is what is to be reported about a service: values of the series
// present, and the end of those that were reported before and are no more.
type serviceFigures struct {
	key            serviceKey
	values         [numSeries]float64
	present, ended seriesSet
	pods           int // how many of the evaluation's pods are its own
}

func (f *serviceFigures) set(s series, v float64) {
	f.values[s] = v
	f.present |= 1 << s
}

// totals adds up the pods of a service.
type totals struct {
	total                                         [numFields]float64
	votes                                         [numFields]int // pods that have the field
	lowest, highest                               float64        // utilization
	measured, unmeasured                          int            // devices that report, with and without utilization
	oldest                                        int64          // time of the oldest point in total
	pods                                          [numPodStates]int
	settled, pending                              int
	devicesReporting, devicesMissing, devicesIdle int
	unknown, quiet                                int  // pods that may be settled, devices that may be idle
	listed                                        bool // the Kubernetes API has one
}

func (s *totals) add(v *podValue, st podState, stands standing) {
	s.pods[st]++
	s.devicesReporting += v.fresh
	s.listed = s.listed || stands.listed
	if stands.unknown() {
		s.unknown++
	}
	if st == warming || st == notRunning {
		return
	}
	s.settled++
	s.devicesMissing += v.silent
	s.devicesIdle += v.idle
	s.quiet += v.quiet
	if v.fresh == 0 {
		return
	}
	if u := v.value[utilization]; v.has[utilization] {
		if s.votes[utilization] == 0 {
			s.lowest, s.highest = u, u
		}
		s.lowest, s.highest = min(s.lowest, u), max(s.highest, u)
	}
	s.measured += v.n[utilization]
	s.unmeasured += v.fresh - v.n[utilization]
	s.oldest = oldest(s.oldest, v.oldest)
	for f := range numFields {
		if v.has[f] {
			s.total[f] += v.value[f]
			s.votes[f]++
		}
	}
}

// figures writes the sums as series. Until the gate is open, only pods are counted:
// what is missing and what the averages are cannot be known.
//
// Who watches takes a 0 for the end of what was raised before the start. So what is
// missing, and what is idle, is absent while a pod or a device may be that, and none
// are reported only of all pods. That something is missing is a fact when it is of those
// that are known, and then so is its end.
func (s *totals) figures(svc *service, k knowledge, partialThreshold float64, now int64) serviceFigures {
	var f serviceFigures
	for st, n := range s.pods {
		f.set(serPodsReporting+series(st), float64(n))
	}
	if !k.open {
		return f
	}
	f.set(serDevicesReporting, float64(s.devicesReporting))
	if s.unknown == 0 {
		f.set(serDevicesMissing, float64(s.devicesMissing))
		ratio := float64(s.pods[missing]) / float64(s.settled) // NaN where none is settled
		partial := ratio > partialThreshold
		svc.wasPartial = svc.wasPartial || partial
		if k.all || svc.wasPartial {
			f.set(serPartial, 0)
			if s.settled > 0 {
				f.set(serMissingRatio, ratio)
			}
		}
		if partial {
			f.set(serPartial, 1)
		}
	}
	known := s.measured > 0 || s.unmeasured == 0
	if svc.wasIdle = svc.wasIdle || s.devicesIdle > 0; known && s.unknown+s.quiet == 0 && (k.back || svc.wasIdle) {
		f.set(serIdleDevices, float64(s.devicesIdle))
	}

	for fd, n := range s.votes {
		if n == 0 {
			continue
		}
		f.set(serDataAge, time.Duration(now-s.oldest).Seconds())
		f.set(means[fd], s.total[fd]/float64(n))
		if sum, ok := sums[field(fd)]; ok {
			f.set(sum, s.total[fd])
		}
	}
	if s.votes[utilization] > 0 {
		f.set(serUtilizationMin, s.lowest)
		f.set(serUtilizationMax, s.highest)
		f.set(serMeanDevices, float64(s.measured))
	}
	return f
}
