// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// Throttling are the reasons for which a device holds its clocks down that need
// attention: the hardware protects itself. A power cap is a configured limit.
var Throttling = []string{names.ThrottleHWThermal, names.ThrottleSWThermal, names.ThrottleHWPowerBrake, names.ThrottleHWSlowdown,
	names.ThrottleProchot, names.ThrottleVRThermal, names.ThrottleMemoryThermal}

// ofTelemetry finds what telemetry shows to be wrong right now.
func ofTelemetry(log *Log, t *Telemetry, add func(*entry)) {
	noticed := map[string]bool{} // the log decides on those
	for _, e := range slices.Concat(log.Notices, log.Acknowledged) {
		noticed[ofEvent(e, true).same] = true
	}
	for i := range t.Devices {
		ofDevice(&t.Devices[i], func(e *entry) {
			if !noticed[e.same] {
				add(e)
			}
		})
	}
	lost := map[Place]bool{}
	for _, n := range t.Nodes {
		if !n.Lost {
			continue
		}
		lost[n.ID] = true
		add(&entry{node: n.ID, same: sameNode(consoleapi.LostNode, n.ID), Reason: consoleapi.Reason{
			Kind: consoleapi.LostNode, Severity: consoleapi.SeverityError, Label: nodeLabel, Since: when(n.LastSeen),
			Text: "Node " + n.ID.Name + " reports nothing: neither its exporter nor its kubelet was seen lately.", Subject: consoleapi.Subject{Cluster: pointer(n.ID.Cluster)},
		}})
	}
	for _, x := range t.Exporters {
		if !lost[x.Node] {
			add(ofExporter(x))
		}
	}
}

func ofDevice(d *Device, add func(*entry)) {
	name := d.Label
	if d.Node.Name != "" {
		name += " of " + d.Node.Name
	}
	put := func(kind consoleapi.Attention, severity consoleapi.Severity, label, sentence, code string) {
		add(&entry{device: d.ID, node: d.Node, same: sameDevice(kind, d.ID, code), Reason: consoleapi.Reason{
			Kind: kind, Severity: severity, Label: label, Text: name + " " + sentence,
			Notice:  kind == consoleapi.XID || kind == consoleapi.ECCUncorrected,
			Subject: consoleapi.Subject{Cluster: pointer(d.ID.Cluster), Device: pointer(d.ID.Name)},
		}})
	}
	if d.Lost {
		put(consoleapi.LostDevice, consoleapi.SeverityError, lostLabel, "reports nothing, although its exporter answers.", "")
	}
	if len(d.Gone) > 0 {
		put(consoleapi.MissingValues, consoleapi.SeverityWarn, goneLabel, "reports no "+strings.Join(d.Gone, " and no ")+" any more: its exporter's page lacks it.", "")
	}
	for _, code := range d.XIDs {
		n, err := strconv.Atoi(code)
		known, _ := xid.Lookup(n)
		if err != nil || known.Severity == xid.Info || d.LastXID != nil && *d.LastXID == 0 {
			continue
		}
		put(consoleapi.XID, severityOf(string(known.Severity), true), xidLabel(code), "reported XID "+code+": "+known.Meaning, code)
	}
	if d.Uncorrected > 0 {
		put(consoleapi.ECCUncorrected, consoleapi.SeverityError, eccLabel, "reported uncorrected ECC errors in the last 24 hours.", "")
	}
	if d.RowRemap {
		put(consoleapi.RowRemapFailure, consoleapi.SeverityError, remapLabel, "could not remap a memory row: the board needs to be replaced.", "")
	}
	if d.Retired {
		put(consoleapi.RetiredPages, consoleapi.SeverityWarn, retiredLabel, "has memory pages that are retired at the next reboot or reset.", "")
	}
	if active := slices.DeleteFunc(slices.Clone(Throttling), func(r string) bool { return !slices.Contains(d.Throttle, r) }); len(active) > 0 {
		label := throttleLabel(active)
		put(consoleapi.Throttled, consoleapi.SeverityWarn, label, "holds its clocks down ("+strings.TrimPrefix(label, "throttled: ")+").", "")
	}
}

func ofExporter(x Exporter) *entry {
	of := "at " + net.JoinHostPort(x.Address, x.Port)
	if x.Port == "" {
		of = "at " + x.Address
	}
	if x.Node.Name != "" {
		of = cmp.Or("of node "+x.Node.Name, of)
	}
	e := &entry{node: x.Node, same: sameExporter(x.Node.Cluster, x.Node.Name, x.Address, x.Port), Reason: consoleapi.Reason{
		Kind: consoleapi.DownExporter, Severity: consoleapi.SeverityWarn, Label: downLabel,
		Text:    "The exporter " + of + " does not answer.",
		Subject: consoleapi.Subject{Cluster: pointer(x.Node.Cluster)},
	}}
	if x.Node.Name != "" {
		e.also = sameExporter(x.Node.Cluster, "", x.Address, x.Port)
	}
	switch {
	case x.Frozen:
		e.Kind, e.Label, e.Text = consoleapi.FrozenExporter, frozenLabel, "The exporter "+of+" answers with values that stand still."
	case x.Unrecognized:
		e.Kind, e.Label = consoleapi.UnrecognizedExporter, unrecognizedLabel
		e.Text = "The exporter " + of + " answers with fields that are not known: none of its page has the utilization, memory or power of a GPU."
	case x.Vanished:
		e.Text, e.Since = "The exporter "+of+" was scraped before, and is not any more.", when(x.LastSeen)
	}
	return e
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
