// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package communicator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/stall"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// series is one of those that are written about a subject. Communicators of one label are one: the
// groups of a job that have no name differ in nothing that lasts.
type series struct {
	subject Subject
	metric  string
	label   string // of the communicator
	rank    int    // -1: none
	value   string // host, or state
}

// point is the newest of a series.
type point struct {
	series
	metric *names.Metric
	v      float64
}

// figures are what the communicators of one label of a job add up to.
type figures struct {
	reporting, silent int
	judged            bool
	wait, total       float64
	latest            []straggler.Late
}

func (s *State) figures(now time.Time) map[Subject]map[string]*figures {
	all := map[Subject]map[string]*figures{}
	for _, r := range s.late.Reports(now) {
		c := s.comms[r.Communicator]
		if c == nil {
			continue
		}
		of := all[c.subject]
		if of == nil {
			of = map[string]*figures{}
			all[c.subject] = of
		}
		f := of[r.Communicator.Label()]
		if f == nil {
			f = &figures{}
			of[r.Communicator.Label()] = f
		}
		f.reporting += r.Reporting
		f.silent += r.Communicator.Ranks - r.Reporting
		if r.Judged {
			f.judged = true
			f.wait += r.Wait
			f.total += r.Total
			f.latest = append(f.latest, r.Latest...)
		}
	}
	return all
}

func (s *State) points(now time.Time) (all []point) {
	for subject, labels := range s.figures(now) {
		for label, f := range labels {
			add := func(m *names.Metric, v float64, rank int, value string) {
				all = append(all, point{series{subject, m.Name, label, rank, value}, m, v})
			}
			add(&names.NCCLRanks, float64(f.reporting), -1, names.RankReporting)
			add(&names.NCCLRanks, float64(f.silent), -1, names.RankSilent)
			stalled := 0.0
			if stage := s.jobs[subject].quiet.Stage(); stage != stall.None {
				stalled = 1
			}
			if s.jobs[subject].held > 0 { // of others it is not known whether they are over
				add(&names.NCCLStalled, stalled, -1, "")
			}
			if !f.judged {
				continue
			}
			add(&names.NCCLWaitRatio, f.wait/f.total, -1, "")
			slices.SortFunc(f.latest, func(a, b straggler.Late) int {
				return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Lateness, a.Lateness), cmp.Compare(a.Rank, b.Rank))
			})
			seen := map[straggler.Suspect]bool{}
			for _, l := range f.latest {
				if seen[l.Suspect] || len(seen) == 3 {
					continue
				}
				seen[l.Suspect] = true
				add(&names.NCCLRankLate, l.Share, l.Rank, l.Host)
				add(&names.NCCLRankLateness, l.Lateness.Seconds(), l.Rank, l.Host)
			}
		}
	}
	return all
}

// write writes the points, and the end of each series that has none any more.
func (s *State) write(all []point, now time.Time, describe func(pcommon.InstrumentationScope)) pmetric.Metrics {
	was := s.emitted
	s.emitted = make(map[series]bool, len(all))
	for i := range all {
		s.emitted[all[i].series] = true
		delete(was, all[i].series)
	}
	for ended := range was {
		all = append(all, point{series: ended})
	}
	slices.SortFunc(all, func(a, b point) int { return a.compare(&b.series) })
	md, at := pmetric.NewMetrics(), pcommon.NewTimestampFromTime(now)
	var metrics pmetric.MetricSlice
	var dps pmetric.NumberDataPointSlice
	for i := range all {
		p := &all[i]
		if i == 0 || all[i-1].subject != p.subject {
			rm := md.ResourceMetrics().AppendEmpty()
			s.identify(p.subject, rm.Resource().Attributes())
			sm := rm.ScopeMetrics().AppendEmpty()
			describe(sm.Scope())
			metrics = sm.Metrics()
		}
		// An end is a Metric of its own: the Prometheus exporter reads no further in it.
		if i == 0 || all[i-1].subject != p.subject || all[i-1].series.metric != p.series.metric || p.metric == nil || all[i-1].metric == nil {
			m := metricsByName[p.series.metric]
			dps = m.Init(metrics.AppendEmpty())
		}
		p.write(dps.AppendEmpty(), at)
	}
	return md
}

var metricsByName = func() map[string]*names.Metric {
	all := map[string]*names.Metric{}
	for _, m := range []*names.Metric{&names.NCCLWaitRatio, &names.NCCLRankLate, &names.NCCLRankLateness, &names.NCCLRanks, &names.NCCLStalled} {
		all[m.Name] = m
	}
	return all
}()

func (p *point) write(dp pmetric.NumberDataPoint, at pcommon.Timestamp) {
	dp.SetTimestamp(at)
	attrs := dp.Attributes()
	attrs.PutStr(names.NCCLCommunicator, p.label)
	switch {
	case p.rank >= 0:
		attrs.PutInt(names.NCCLRank, int64(p.rank))
		attrs.PutStr(names.NCCLHost, p.value)
	case p.value != "":
		attrs.PutStr(names.NCCLRankState, p.value)
	}
	switch {
	case p.metric == nil:
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	case p.metric.Int():
		dp.SetIntValue(int64(p.v))
	default:
		dp.SetDoubleValue(p.v)
	}
}

func (s series) compare(o *series) int {
	return cmp.Or(s.subject.compare(&o.subject), cmp.Compare(s.metric, o.metric), cmp.Compare(s.label, o.label), cmp.Compare(s.rank, o.rank), cmp.Compare(s.value, o.value))
}

func (s *Subject) compare(o *Subject) int {
	return cmp.Or(
		cmp.Compare(s.Cluster, o.Cluster), cmp.Compare(s.SlurmCluster, o.SlurmCluster), cmp.Compare(s.Namespace, o.Namespace),
		cmp.Compare(s.Service, o.Service), cmp.Compare(s.Pod, o.Pod), cmp.Compare(s.Job, o.Job),
	)
}

// identify writes the identity of a subject, as its resource had it.
func (s *State) identify(of Subject, attrs pcommon.Map) {
	if is, has := s.known[of]; has {
		is.CopyTo(attrs)
	}
}

// subjects are those of all jobs, in order.
func (s *State) subjects() []Subject {
	return slices.SortedFunc(maps.Keys(s.jobs), func(a, b Subject) int { return a.compare(&b) })
}
