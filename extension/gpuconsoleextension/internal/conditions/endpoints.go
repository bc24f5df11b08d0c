// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"fmt"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// EndpointFor is for how long after its last delivery an endpoint that does not
// get them is reported: one that was taken out of the configuration has no
// further ones, and nothing else distinguishes it from one that has had no event since.
const EndpointFor = 7 * 24 * time.Hour

// endpoint is what is known of a webhook endpoint since it last got a delivery.
type endpoint struct {
	last   *store.Delivery // the newest
	lost   *store.Delivery // the newest that was given up
	first  *store.Delivery // the oldest that failed
	failed int
	over   bool // it got one
}

// Endpoints are the webhook endpoints that do not get their deliveries, of which
// the newest come first: what happened last decides, so that one delivery, or a
// test, ends it. Among them is the audit log of deliveries, if it was set aside:
// nothing ends that but time.
func Endpoints(deliveries []*store.Delivery, now time.Time) []consoleapi.Reason {
	all := map[string]*endpoint{}
	out := []consoleapi.Reason{}
	for _, d := range deliveries {
		if d.Trigger == audit.TriggerSetAside && len(out) == 0 && now.Sub(d.Time) < EndpointFor {
			out = append(out, setAside(d))
		}
		// The end of the collector proves nothing about the endpoint.
		if d.ErrorType == audit.ErrorShutdown || d.ErrorType == audit.ErrorInterrupted || d.Receiver == "" {
			continue
		}
		e := all[d.Receiver]
		if e == nil {
			e = &endpoint{last: d}
			all[d.Receiver] = e
		}
		switch {
		case e.over:
		case d.Outcome == audit.Succeeded:
			e.over = true
		default:
			e.failed++
			e.first = d
			if e.lost == nil && d.NextAttempt.IsZero() {
				e.lost = d
			}
		}
	}
	for name, e := range all {
		if e.failed > 0 && now.Sub(e.last.Time) < EndpointFor {
			out = append(out, e.reason(name))
		}
	}
	return sorted(out)
}

func setAside(d *store.Delivery) consoleapi.Reason {
	return consoleapi.Reason{
		Kind: consoleapi.FailedDelivery, Severity: consoleapi.SeverityError, Label: "audit log set aside", Since: when(d.Time),
		Text: "The audit log that the collector found at a start did not verify: it was set aside, and a new one began. " +
			"The collector's log names its files; check them with gpuctl audit verify.",
	}
}

func (e *endpoint) reason(name string) consoleapi.Reason {
	r := consoleapi.Reason{
		Kind: consoleapi.FailedDelivery, Severity: consoleapi.SeverityError, Label: "webhook " + name + " fails", Endpoint: &name, Since: when(e.first.Time),
	}
	if len(e.last.EventIDs) > 0 {
		r.EventID = &e.last.EventIDs[0]
	}
	subject := "Webhook endpoint " + name
	why := string(e.last.ErrorType)
	if e.last.Status != 0 {
		why = fmt.Sprintf("it answered %d", e.last.Status)
	}
	switch {
	case e.last.ErrorType == audit.ErrorGone:
		r.Label = "webhook " + name + " switched off"
		r.Text = subject + " answered 410 Gone and gets nothing any more."
	case e.last.ErrorType == audit.ErrorSSRFBlocked:
		r.Label = "webhook " + name + " blocked"
		r.Text = subject + " gets nothing: its address is blocked; allow_cidrs or allow_ports would have to open it."
	case e.lost == nil:
		r.Severity = consoleapi.SeverityWarn
		r.Text = fmt.Sprintf("%s did not take %s (%s); it is tried again.", subject, deliveriesOf(e.failed), why)
	default:
		r.Text = fmt.Sprintf("%s did not take %s (%s); some were given up.", subject, deliveriesOf(e.failed), why)
	}
	return r
}

func deliveriesOf(attempts int) string {
	if attempts == 1 {
		return "the last attempt"
	}
	return fmt.Sprintf("the last %d attempts", attempts)
}
