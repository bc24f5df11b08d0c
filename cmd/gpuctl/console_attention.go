// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// labels are reasons in a few words each, the worst first.
func labels(reasons []consoleapi.Reason) string {
	var all []string
	for i := range reasons {
		if label := name(reasons[i].Label); !slices.Contains(all, label) {
			all = append(all, label)
		}
	}
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, "; ")
}

// deviceLabels are those of a pod's devices, each behind the device's number
// where there are several.
func deviceLabels(devices []consoleapi.Device) string {
	var all []string
	for i := range devices {
		text := labels(devices[i].Reasons)
		if text == none {
			continue
		}
		if len(devices) > 1 {
			text = ids(devices[i:i+1]) + ": " + text
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, "; ")
}

func pressingService(s consoleapi.Service) bool { return consoleapi.Pressing(s.Reasons) }

// pressingPod reports whether a pod or one of its devices needs attention.
func pressingPod(p consoleapi.Pod) bool {
	return p.State == consoleapi.PodMissing || p.State == consoleapi.PodDegraded ||
		slices.ContainsFunc(p.Devices, func(d consoleapi.Device) bool { return consoleapi.Pressing(d.Reasons) })
}

// unwell are the values of nodes --check, the strictest last: from which health of a
// board on a node is not well.
var unwell = []consoleapi.HealthState{consoleapi.HealthFailed, consoleapi.HealthPredictedFailure, consoleapi.HealthDegraded, consoleapi.HealthUnknown}

// pressingNode reports whether a node needs attention: for its health from a state on,
// else for whatever is wrong with it.
func pressingNode(n consoleapi.Node, least consoleapi.HealthState) bool {
	switch {
	case n.State != consoleapi.NodeOK && n.State != consoleapi.NodeDegraded, n.Counts.Lost > 0:
		return true
	case least == consoleapi.HealthUnknown && (n.Health.State == consoleapi.HealthUnknown || n.Health.State == ""):
		return true
	case least == consoleapi.HealthUnknown:
		least = consoleapi.HealthDegraded
	}
	return n.Health.State.AtLeast(least) || slices.ContainsFunc(n.Reasons, func(r consoleapi.Reason) bool {
		if r.Kind == consoleapi.Unhealthy && r.Severity == consoleapi.SeverityWarn {
			return n.Health.State == consoleapi.HealthUnknown && slices.ContainsFunc(n.Health.Reasons, func(last consoleapi.HealthReason) bool {
				return last.State.AtLeast(least)
			})
		}
		return r.Pressing()
	})
}

// elsewhere writes what needs attention in the fleet, and is about no service.
func elsewhere(w io.Writer, f *consoleapi.FleetSummary) error {
	var lines []string
	for i := range f.Reasons {
		if r := &f.Reasons[i]; r.Subject.Service == nil {
			lines = append(lines, fmt.Sprintf("%s: %s\n", name(string(r.Severity)), safetext.Strip(r.Text, 500)))
		}
	}
	if more := f.ReasonsTotal - len(f.Reasons); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more\n", more))
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprint(w, "\n"+strings.Join(lines, ""))
	return err
}

// notes writes what a reader of an answer has to know first: what the store cannot
// keep, how old the answer is, and why there is nothing to show. It reports whether
// something is wrong with the store.
func notes(ctx context.Context, c *consoleClient, w io.Writer, f consoleapi.Freshness) bool {
	var status consoleapi.StatusAnswer
	if err := c.get(ctx, "status", nil, &status); err != nil {
		fmt.Fprintf(w, "Whether the store keeps what arrives is not known: %v\n", err)
		fresh(w, f)
		return true
	}
	for _, p := range status.Store.Problems {
		text := fmt.Sprintf("%s are not stored: %s, since %s", name(p.Part), name(p.Reason), p.Since.Local().Format(time.DateTime))
		if p.Ended != nil {
			text = fmt.Sprintf("%s were not stored: %s, from %s to %s", name(p.Part), name(p.Reason), p.Since.Local().Format(time.DateTime), p.Ended.Local().Format(time.DateTime))
		}
		if p.Refused > 0 {
			text += fmt.Sprintf(", %d refused", p.Refused)
		}
		fmt.Fprintf(w, "STORE: %s; %s.\n", text, safetext.Strip(p.Detail, 1000))
	}
	text := nothing(&status)
	if f.DataAge != nil || text == "" {
		fresh(w, f)
	}
	if text != "" && (f.DataAge == nil || status.State == consoleapi.NotStored) {
		fmt.Fprintln(w, text)
	}
	return len(status.Store.Problems) > 0
}

// nothing is why there is no service to show, and the next step; empty if there
// are services, or the cause is not known.
func nothing(status *consoleapi.StatusAnswer) string {
	t := status.Telemetry
	switch status.State {
	case consoleapi.NotEnabled:
		return "Nothing has ever arrived in the store. Next: gpuctl doctor"
	case consoleapi.NotStored:
		return "What arrives cannot be stored, so exporters and nodes that seem silent may report all the same. Next: gpuctl doctor state telemetry"
	case consoleapi.NoServices:
		what := "Exporters report, and no device of theirs does."
		next := "gpuctl nodes"
		if t.Devices != nil && *t.Devices > 0 {
			what, next = "1 device reports, and no service is known to have it.", "gpuctl nodes --devices"
			if *t.Devices > 1 {
				what = fmt.Sprintf("%d devices report, and no service is known to have one.", *t.Devices)
			}
		}
		return what + " Next: " + next + " shows what there is; if pods do have GPUs, gpuctl doctor kubelet exporter"
	default:
		return ""
	}
}
