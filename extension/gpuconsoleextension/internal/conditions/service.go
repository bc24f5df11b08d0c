// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"fmt"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// OfService are the reasons that follow from a service's own figures; stale is
// whether these are old.
func OfService(s *consoleapi.Service, stale bool) []consoleapi.Reason {
	p := &s.Pods
	out := []consoleapi.Reason{}
	put := func(applies bool, kind consoleapi.Attention, severity consoleapi.Severity, label, sentence string) {
		if !applies {
			return
		}
		out = append(out, consoleapi.Reason{
			Kind: kind, Severity: severity, Label: label, Text: sentence,
			Subject: consoleapi.Subject{Cluster: s.Cluster, Namespace: &s.Namespace, Service: &s.Service},
		})
	}
	known := s.Partial != nil
	noneSettled := p.Settled != nil && *p.Settled == 0
	noData := some(p.Settled) && *p.Missing == *p.Settled
	settled := count(p.Settled, "settled pod")
	put(stale, consoleapi.Stale, consoleapi.SeverityError, "stale", "The summary of the service is old: it was so, and need not be so any more.")
	put(noData && known, consoleapi.NoData, consoleapi.SeverityError, "no data", "None of "+settled+" reports.")
	put(known && *s.Partial && !noData, consoleapi.Partial, consoleapi.SeverityWarn,
		fmt.Sprintf("partial: %d of %d missing", zero(p.Missing), zero(p.Settled)), fmt.Sprintf("%d of %s report nothing.", zero(p.Missing), settled))
	put(some(p.Missing) && known, consoleapi.MissingPods, consoleapi.SeverityWarn,
		fmt.Sprintf("%d missing", zero(p.Missing)), fmt.Sprintf("%d of %s report nothing.", zero(p.Missing), settled))
	put(some(p.Degraded), consoleapi.DegradedPods, consoleapi.SeverityWarn,
		fmt.Sprintf("%d degraded", zero(p.Degraded)), "Of "+count(p.Degraded, "pod")+" some devices report nothing.")
	put(some(p.Pending), consoleapi.PendingPods, consoleapi.SeverityWarn,
		fmt.Sprintf("%d pending", zero(p.Pending)), "No node has accepted "+count(p.Pending, "pod")+".")
	put(some(s.Devices.Idle), consoleapi.IdleDevices, consoleapi.SeverityInfo,
		fmt.Sprintf("%d idle-held", zero(s.Devices.Idle)), count(s.Devices.Idle, "device")+" of the service were hardly used for long.")
	put(noneSettled && p.Warming != nil && *p.Warming == 0 && some(p.NotRunning), consoleapi.NotRunning, consoleapi.SeverityInfo,
		"not running", "No pod is running.")
	put(noneSettled && some(p.Warming), consoleapi.Warming, consoleapi.SeverityInfo, "warming up", "No pod has run for long enough to be judged.")
	put(!known, consoleapi.Unknown, consoleapi.SeverityInfo, "not known yet", "The summary has just started: whether pods are missing is not known yet.")
	return out
}

func some(n *int) bool { return n != nil && *n > 0 }

func zero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func count(n *int, word string) string {
	if zero(n) == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", zero(n), word)
}
