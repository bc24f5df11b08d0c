// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package communicator

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/stall"
	"github.com/otelcol-gpu/otelcol-gpu/connector/ncclconnector/internal/straggler"
	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Evaluate ends what is due. It returns the metrics of now, and the events since the last call.
func (s *State) Evaluate(now time.Time, describe func(pcommon.InstrumentationScope)) (pmetric.Metrics, []event.Event) {
	var all []event.Event
	for _, v := range s.late.Tick(now) {
		all = append(all, s.straggler(&v, now))
	}
	held := s.fleet.holdings(now)
	for _, subject := range s.subjects() {
		j := s.jobs[subject]
		j.held = held[subject].Held
		if stage, changed := j.quiet.Judge(held[subject], s.cfg.StallAfter, now); changed {
			all = append(all, s.stall(subject, j, stage, now))
		}
	}
	s.forgotten()
	md := s.write(s.points(now), now, describe)
	maps.DeleteFunc(s.known, func(subject Subject, _ pcommon.Map) bool { return s.jobs[subject] == nil })
	return md, all
}

// of names a subject in a sentence.
func (s *Subject) of() string {
	switch {
	case s.Job != "":
		return "job " + event.Clean(s.Job)
	case s.Service != "":
		return "service " + event.Clean(strings.TrimPrefix(s.Namespace+"/"+s.Service, "/"))
	case s.Pod != "":
		return "pod " + event.Clean(s.Namespace+"/"+s.Pod)
	}
	return "an unknown job"
}

func (s *Subject) key() []string {
	if s.Job != "" {
		return []string{s.Cluster, s.SlurmCluster, s.Job}
	}
	return []string{s.Cluster, s.Namespace, s.Service + s.Pod}
}

// straggler is the event of a verdict.
func (s *State) straggler(v *straggler.Verdict, now time.Time) event.Event {
	c, who := s.comms[v.Communicator], &v.Suspect
	var subject Subject
	var at place
	if c != nil {
		subject, at = c.subject, c.places[who.Rank]
	}
	which := "rank " + strconv.Itoa(who.Rank) + " on " + event.Clean(who.Host)
	if who.Rank < 0 {
		which, at = "host "+event.Clean(who.Host), place{host: who.Host}
	}
	label := event.Clean(v.Communicator.Label())
	ev := event.Event{
		Name: names.EventNCCLStraggler, State: names.EventCleared, At: pcommon.NewTimestampFromTime(now), Severity: plog.SeverityNumberInfo,
		Key: event.Key(names.EventNCCLStraggler, append(subject.key(), v.Communicator.ID, v.Communicator.Name, strconv.Itoa(who.Rank), who.Host)...),
	}
	d := s.fleet.all[deviceKey{subject.Cluster, at.device}]
	switch {
	case v.Raised:
		ev.State, ev.Severity = names.EventRaised, plog.SeverityNumberWarn
		ev.Body = fmt.Sprintf("Communicator %s of %s waits for %s: it came last to %.0f %% of %d collective operations, by %s on average. The ranks wait for %.0f %% of their time in them.%s",
			label, subject.of(), which, 100*v.Share, v.Evaluated, v.Lateness.Round(time.Microsecond), 100*v.Wait, d.sentence(at.device, now))
	case v.Gone:
		ev.Body = fmt.Sprintf("Communicator %s of %s is over, which waited for %s.", label, subject.of(), which)
	default:
		ev.Body = fmt.Sprintf("Communicator %s of %s no longer waits for %s.", label, subject.of(), which)
	}
	ev.Resource = s.resource(subject, at)
	share, wait, lateness, rank, host := v.Share, v.Wait, v.Lateness.Seconds(), who.Rank, who.Host
	raised, reasons, xid := v.Raised, []string(nil), int64(0)
	if d != nil && now.Sub(d.read) <= deviceTTL {
		reasons, xid = d.reasons(), d.xid
	}
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutStr(names.NCCLCommunicator, label)
		attrs.PutStr(names.NCCLHost, host)
		if rank >= 0 {
			attrs.PutInt(names.NCCLRank, int64(rank))
		}
		if !raised {
			return
		}
		attrs.PutDouble(names.NCCLLateRatio, share)
		attrs.PutDouble(names.NCCLLateness, lateness)
		attrs.PutDouble(names.NCCLWaitShare, wait)
		event.PutList(attrs, names.GPUThrottleReasons, reasons)
		if xid > 0 {
			attrs.PutInt(names.GPUXIDCode, xid)
		}
	})
	return ev
}

// sentence says what is known of the device of a late rank.
func (d *device) sentence(id string, now time.Time) string {
	switch {
	case id == "":
		return ""
	case d == nil || now.Sub(d.read) > deviceTTL:
		return fmt.Sprintf(" Of its GPU %s nothing is known.", event.Clean(id))
	}
	against := make([]string, 0, 2)
	if reasons := d.reasons(); len(reasons) > 0 {
		against = append(against, "is throttled ("+event.Clean(strings.Join(reasons, ", "))+")")
	}
	if d.xid > 0 {
		against = append(against, "had XID "+strconv.FormatInt(d.xid, 10))
	}
	if len(against) == 0 {
		return fmt.Sprintf(" Its GPU %s is not throttled and had no XID.", event.Clean(id))
	}
	return fmt.Sprintf(" Its GPU %s %s.", event.Clean(id), strings.Join(against, " and "))
}

// stall is the event of a job that has become silent, or is so no more.
func (s *State) stall(subject Subject, j *job, stage stall.Stage, now time.Time) event.Event {
	ev := event.Event{
		Name: names.EventNCCLStall, State: names.EventCleared, At: pcommon.NewTimestampFromTime(now), Severity: plog.SeverityNumberInfo,
		Key: event.Key(names.EventNCCLStall, subject.key()...), Resource: s.resource(subject, place{}),
	}
	silent := event.InWords(now.Sub(j.quiet.Last()).Truncate(time.Minute))
	devices := event.Plural(j.held, "GPU")
	state := names.StallSuspected
	switch {
	case stage == stall.None && j.held == 0:
		ev.Body = fmt.Sprintf("The GPUs of %s were released, whose ranks were silent.", subject.of())
		return ev
	case stage == stall.None:
		ev.Body = fmt.Sprintf("Collective operations of %s end again.", subject.of())
		return ev
	case stage == stall.Confirmed:
		state = names.StallConfirmed
		ev.Severity = plog.SeverityNumberError
		ev.Body = fmt.Sprintf("No rank of %s has ended a collective operation for %s. It holds %s: all are busy, without tensor cores and NVLink, as kernels are that wait for another rank.", subject.of(), silent, devices)
	default:
		ev.Severity = plog.SeverityNumberWarn
		ev.Body = fmt.Sprintf("No rank of %s has ended a collective operation for %s, and it still holds %s.", subject.of(), silent, devices)
	}
	ev.State = names.EventRaised
	held := int64(j.held)
	ev.Add(func(attrs pcommon.Map) {
		attrs.PutStr(names.NCCLStallState, state)
		attrs.PutInt(names.NCCLHeldDevices, held)
	})
	return ev
}

// resource writes what an event is about.
func (s *State) resource(of Subject, at place) func(pcommon.Map) {
	attrs := pcommon.NewMap()
	s.identify(of, attrs)
	event.PutTexts(attrs, names.K8sPodName, at.pod, names.HwID, at.device)
	if at.host != "" {
		attrs.PutStr(names.K8sNodeName, at.host)
	}
	return func(m pcommon.Map) { attrs.CopyTo(m) }
}
