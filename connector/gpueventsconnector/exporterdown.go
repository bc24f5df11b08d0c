// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// exporterID is the identity of an exporter. On a known node it is the port,
// because the address is that of a pod, and changes with each of its restarts;
// elsewhere address and port.
type exporterID struct {
	cluster, node, address string
	port                   int64
}

// name is the exporter's name on its node, or among the exporters without one.
func (id exporterID) name() string {
	port := strconv.FormatInt(id.port, 10)
	if id.address == "" {
		return port
	}
	return id.address + ":" + port
}

// exporterNamed is the exporter with that name.
func exporterNamed(cluster, node, name string) (id exporterID, ok bool) {
	port := name
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		id.address, port = name[:i], name[i+1:]
	}
	n, err := strconv.ParseInt(port, 10, 64)
	id.cluster, id.node, id.port = cluster, node, n
	return id, err == nil && id.name() == name
}

// exporter is a dcgm-exporter.
type exporter struct {
	id       exporterID
	heard    time.Duration
	opened   bool
	snapshot pcommon.Timestamp
	at       pcommon.Timestamp
	answers  []answer // by address; one, but while a pod is replaced by the next
	down     condition

	frozen   bool              // when it was last judged
	restored bool              // as frozen: no point has denied it since the restart
	unsaid   pcommon.Timestamp // since when it answers, was frozen, and nothing is said of that; 0: it is
}

// answer is what is known of an exporter at one address.
type answer struct {
	address    string
	port       int64
	up, frozen int8              // 1, 0; -1: not said
	still      bool              // it was frozen, and nothing has denied it since
	at, before pcommon.Timestamp // of this word, and of the one before it
}

// unsaidFor is after how long an exporter that was frozen is over it without a word on
// that: its pages have none, as those of an exporter without energy fields.
const unsaidFor = 15 * time.Minute

// maxAnswers bounds the addresses of one exporter.
const maxAnswers = 8

func downRule(c *DownEvent) rule {
	return rule{event: names.EventExporterDown, levels: []level{{c.For, plog.SeverityNumberWarn}}}
}

// exporterOf finds or makes an exporter; nil when there is no room.
func (e *engine) exporterOf(id exporterID) *exporter {
	x := e.exporters[id]
	if x != nil {
		return x
	}
	if len(e.exporters) >= e.cfg.MaxSubjects {
		e.unwatched("exporter")
		return nil
	}
	id.cluster, id.node, id.address = strings.Clone(id.cluster), strings.Clone(id.node), strings.Clone(id.address)
	x = &exporter{id: id}
	e.exporters[id] = x
	return x
}

// openExporter is as openDevice.
func (e *engine) openExporter(x *exporter, at pcommon.Timestamp) bool {
	switch {
	case at == x.snapshot:
		return true
	case at < x.snapshot, at <= x.at:
		if e.now-x.heard < clockSet {
			e.counts.late++
			return false
		}
	}
	if x.snapshot != 0 {
		e.judgeExporter(x)
	}
	x.snapshot, x.heard = at, e.now
	if !x.opened {
		x.opened = true
		e.opened = append(e.opened, x)
	}
	return true
}

// answered notes what a point of an exporter says.
func (x *exporter) answered(address string, port int64, frozen bool, on int8) {
	i := slices.IndexFunc(x.answers, func(a answer) bool { return a.address == address && a.port == port })
	if i < 0 {
		if len(x.answers) >= maxAnswers { // the one that was silent for longest
			oldest := slices.MinFunc(x.answers, func(a, b answer) int { return cmp.Compare(a.at, b.at) })
			x.answers = slices.DeleteFunc(x.answers, func(a answer) bool { return a == oldest })
		}
		i = len(x.answers)
		x.answers = append(x.answers, answer{address: strings.Clone(address), port: port, up: -1, frozen: -1})
	}
	a := &x.answers[i]
	if a.at != x.snapshot {
		a.before, a.at, a.up, a.frozen = a.at, x.snapshot, -1, -1
	}
	if frozen {
		a.frozen = max(a.frozen, on)
		a.still, x.restored = a.frozen == 1, false
	} else if a.up < 0 || on < a.up {
		a.up = on
	}
}

// judgeExporter judges one scrape, of which all parts have arrived.
func (e *engine) judgeExporter(x *exporter) {
	at := x.snapshot
	x.snapshot, x.at = 0, at
	// A pod that was replaced is not heard of any more: what answered in its place
	// did so twice since, or its last word is stale.
	twice := pcommon.Timestamp(0)
	for _, a := range x.answers {
		if a.up == 1 {
			twice = max(twice, a.before)
		}
	}
	x.answers = slices.DeleteFunc(x.answers, func(a answer) bool {
		return a.at < at && (a.at < twice || at.AsTime().Sub(a.at.AsTime()) > e.cfg.Staleness)
	})
	down, silent, answers, scraped := false, false, false, false
	for _, a := range x.answers {
		down = down || a.up == 0 || a.frozen == 1
		silent = silent || a.up == 0
		answers = answers || a.up >= 0
		scraped = scraped || a.at == at && a.up == 1
	}
	met := uint8(0)
	if down {
		met, x.unsaid = 1, 0
	}
	if c := &e.cfg.Events.ExporterDown; c.Enabled && answers && (down || !x.keepsSilent(at)) {
		x.down.take(at, met, !down)
		e.moveExporter(x, at)
	}
	if frozen := x.wasFrozen(); frozen != x.frozen {
		x.frozen, e.changed = frozen, true
	}
	// Of two exporters at one port the one that is down may be the one that has
	// the devices.
	if scraped && !silent && e.cfg.Events.DeviceLost.Enabled {
		e.missDevices(x, at)
	}
}

func (e *engine) moveExporter(x *exporter, at pcommon.Timestamp) {
	if next := x.down.next(&e.down, at); next != x.down.level {
		e.move(&x.down, &e.down, next, at, x.describe)
	}
}

// wasFrozen reports whether it was frozen when that was last said.
func (x *exporter) wasFrozen() bool {
	return x.restored || slices.ContainsFunc(x.answers, func(a answer) bool { return a.still })
}

// keepsSilent reports whether it was frozen, answers, and nothing is said of that: it may
// be frozen still, as where the receiver that would know was restarted.
func (x *exporter) keepsSilent(at pcommon.Timestamp) bool {
	if !x.wasFrozen() {
		x.unsaid = 0
		return false
	}
	if x.unsaid == 0 || at < x.unsaid {
		x.unsaid = at
	}
	if at.AsTime().Sub(x.unsaid.AsTime()) < unsaidFor {
		return true
	}
	x.restored, x.unsaid = false, 0
	for i := range x.answers {
		x.answers[i].still = false
	}
	return false
}

// elapseExporter raises what became due since the newest scrape.
func (e *engine) elapseExporter(x *exporter) {
	if !e.cfg.Events.ExporterDown.Enabled || x.down.at != x.at {
		return
	}
	if due := x.down.due(&e.down); due != 0 {
		if come, fresh := e.due(due, x.at, x.heard); come && fresh {
			e.moveExporter(x, due)
		}
	}
}

// describe makes the exporter what the event is about.
func (x *exporter) describe(ev *event) {
	ev.key = eventKey(ev.name, x.id.cluster, x.id.node, x.id.name())
	id := x.id
	worst := answer{up: -1, frozen: -1} // the one that is down, else the newest
	for _, a := range x.answers {
		if bad := a.up == 0 || a.frozen == 1; bad || a.at >= worst.at && worst.up != 0 && worst.frozen != 1 {
			worst = a
		}
	}
	ev.resource = func(attrs pcommon.Map) {
		putTexts(attrs, names.K8sClusterName, id.cluster, names.K8sNodeName, id.node, names.ServerAddress, worst.address)
		if worst.address != "" {
			attrs.PutInt(names.ServerPort, worst.port)
		}
	}
	who := "The exporter"
	if worst.address != "" {
		who += " at " + clean(worst.address) + ":" + strconv.FormatInt(worst.port, 10)
	} else if id.node == "" {
		who += " at " + clean(id.name())
	}
	if id.node != "" {
		who += " on node " + clean(id.node)
	}
	switch {
	case ev.level == 0:
		ev.body = who + " answers again."
		return
	case worst.up == 0:
		ev.body = who + " does not answer: nothing is known about its GPUs."
	default:
		ev.body = who + " answers with values that stand still: the host engine behind it hangs."
	}
	reason := names.ExporterReasonFrozen
	if worst.up == 0 {
		reason = names.ExporterReasonDown
	}
	ev.details = append(ev.details, func(attrs pcommon.Map) { attrs.PutStr(names.GPUExporterReason, reason) })
}

// dropExporter forgets an exporter and clears what is raised about it.
func (e *engine) dropExporter(x *exporter) {
	e.move(&x.down, &e.down, 0, pcommon.NewTimestampFromTime(e.wall), func(ev *event) {
		x.describe(ev)
		ev.body = "The exporter on node " + clean(x.id.node) + " was not heard of for " + inWords(e.cfg.SubjectTTL) + ", and is no longer waited for."
		if x.id.node == "" {
			ev.body = "The exporter at " + clean(x.id.name()) + " was not heard of for " + inWords(e.cfg.SubjectTTL) + ", and is no longer waited for."
		}
	})
	if x.down.level == 0 {
		delete(e.exporters, x.id)
		e.changed = true
	}
}
