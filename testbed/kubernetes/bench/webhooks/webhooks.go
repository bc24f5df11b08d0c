// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhooks measures delivery to webhooks beside Alertmanager, with and without
// faults.
package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

type m = map[string]any

// How much is handed over, and how fast.
const (
	steadyNotices = 2000
	steadyRate    = 100 // a second
	steadyWait    = time.Minute

	faultNotices = 500
	faultRate    = 25
	faultKill    = 10 * time.Second // after the first is handed over
	faultDown    = 2 * time.Second  // until it is started again
	faultOutage  = 30 * time.Second // of the receivers that refuse and hang
	faultLength  = 2 * time.Minute
	faultResend  = time.Minute // Prometheus' rules.alert.resend-delay
)

// hookTimeout is the timeout of config/webhooks.yaml, and Alertmanager's here.
const hookTimeout = 10 * time.Second

// sources has no components of the configurations that only wait here.
var sources = []string{"config/standalone.yaml", "config/webhooks.yaml", "exporter/webhookexporter", "exporter/gpustoreexporter", "extension/gpustoreextension"}

var Entry = frame.Entry{
	Name:    "webhooks",
	Title:   "Webhooks beside Alertmanager: cost and time of a delivery",
	Sources: sources,
	Turns:   3,
	Text: fmt.Sprintf("%d events, %d a second, each to five receivers on loopback that answer at once. otelcol-gpu gets each in an OTLP/HTTP request, Alertmanager (its own command, with an empty web page) "+
		"as an alert posted to its API. A delivery is one event at one receiver; the time is from the beginning of the request that hands it over to its arrival. CPU is that of all from the first event until the last has arrived. "+
		"standalone.yaml with webhooks.yaml keeps the delivery on disk (with fsync) and writes an audit record of each attempt, writes the event into its store and prints it; Alertmanager keeps neither the alert nor the attempt. "+
		"On the other hand Alertmanager holds what it received until it resolves, which is in its memory. Of one row the groups are by `alertname` with the default waits: "+
		"all events come within its group_wait of 30 s here; what came later would wait for its group_interval of 5 min.", steadyNotices, steadyRate),
	Columns: []frame.Column{
		{Key: "cpu", Title: "CPU, us a delivery", Decimals: 0, Ratio: true},
		{Key: "rss", Title: "resident, MiB", Decimals: 0, Ratio: true},
		{Key: "median", Title: "arrives after, ms, median", Decimals: -1},
		{Key: "p99", Title: "99th percentile", Decimals: -1},
		{Key: "delivered", Title: "delivered, %", Decimals: 1},
		{Key: "requests", Title: "requests a delivery", Decimals: -1},
	},
	Rows: func(*frame.World) []frame.Row {
		at := func(name string, of func(*frame.World, *hooks) notifier) frame.Row {
			return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) { return measureSteady(ctx, w, of) }}
		}
		return []frame.Row{
			at("Alertmanager: a group an alert, group_wait 0s", func(w *frame.World, h *hooks) notifier { return newAlertmanager(w, h, ungrouped) }),
			at("otelcol-gpu: standalone.yaml, webhooks.yaml", func(w *frame.World, h *hooks) notifier { return newShipped(w, h) }),
			at("otelcol-gpu: OTLP in, webhook exporter, nothing kept", func(w *frame.World, h *hooks) notifier { return newAlone(w, h) }),
			at("Alertmanager: grouped by alertname, group_wait 30s", func(w *frame.World, h *hooks) notifier { return newAlertmanager(w, h, grouped) }),
		}
	},
}

var FaultsEntry = frame.Entry{
	Name:    "webhooks-faults",
	Title:   "Webhooks beside Alertmanager: faults",
	Sources: sources,
	Turns:   3,
	Text: fmt.Sprintf("%d events, %d a second, each to five receivers: two that are well, one that answers 503 for the first %.0f s, one that does not answer for the first %.0f s, and one that breaks off every third request. "+
		"%.0f s after the first event the sender of the webhooks is killed with SIGKILL, and started again on the same files %.0f s later. What was not acknowledged is handed over again until it is. After %.0f s in all it is counted, by event and receiver: "+
		"lost is what was acknowledged and not delivered, and has no record that it was given up or will be tried again; a duplicate is a delivery after one that was answered 2xx. An attempt is proved by a record that names event, receiver and answer; "+
		"Alertmanager's is that of its event recorder (an experimental feature, on here), which writes successes. Its attempts end after %.0f s as those of webhooks.yaml do, each alert is a group of its own, and group_wait is 0s; all else is its default. webhooks.yaml's attempts are further and further apart (5, 15, 45 s and so on), Alertmanager's at most a minute and a half: what was broken off four times still waits at the end. "+
		"Alertmanager keeps no alerts across restarts, and is made for a sender that repeats those that last, as Prometheus does every minute: one row has such a sender, the other hands over once what is over at once, as an XID is.",
		faultNotices, faultRate, faultOutage.Seconds(), faultOutage.Seconds(), faultKill.Seconds(), faultDown.Seconds(), faultLength.Seconds(), hookTimeout.Seconds()),
	Columns: []frame.Column{
		{Key: "delivered", Title: "delivered, %", Decimals: 2},
		{Key: "lost", Title: "lost", Decimals: 0, Goal: "0"},
		{Key: "waiting", Title: "still to be tried again", Decimals: 0},
		{Key: "duplicates", Title: "duplicates", Decimals: 0},
		{Key: "proved", Title: "attempts that a log proves, %", Decimals: 1, Goal: "100"},
		{Key: "attempts", Title: "attempts", Decimals: 0},
		{Key: "median", Title: "at the two that are well after, ms, median", Decimals: -1},
		{Key: "p99", Title: "99th percentile", Decimals: -1},
		{Key: "caught", Title: "the one that refused has its last, s after it recovered", Decimals: 1},
	},
	Rows: func(*frame.World) []frame.Row {
		at := func(name string, resend time.Duration, of func(*frame.World, *hooks) notifier) frame.Row {
			return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
				return measureFaults(ctx, w, resend, of)
			}}
		}
		recorded := func(w *frame.World, h *hooks) notifier {
			a := newAlertmanager(w, h, ungrouped)
			a.recorder = true
			return a
		}
		return []frame.Row{
			at("Alertmanager, alerts handed over once", 0, recorded),
			at("Alertmanager, alerts repeated every minute", faultResend, recorded),
			at("otelcol-gpu: standalone.yaml, webhooks.yaml", 0, func(w *frame.World, h *hooks) notifier { return newShipped(w, h) }),
		}
	},
}

// measureSteady measures a notifier with receivers that are all well.
func measureSteady(ctx context.Context, w *frame.World, of func(*frame.World, *hooks) notifier) (_ frame.Figures, err error) {
	h, err := newHooks(well, well, well, well, well)
	if err != nil {
		return nil, err
	}
	defer h.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // handing over ends
	n := of(w, h)
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()

	// The first ones cost more. They have a name of their own, because a group
	// that has been notified waits longer for what comes later.
	first := hand(ctx, n, steadyNotices/10, steadyRate, "gpu.thermal")
	<-first.done
	if err := h.await(ctx, first, steadyWait); err != nil {
		return nil, err
	}
	h.forget()
	before, err := frame.Read(n.pid())
	if err != nil {
		return nil, err
	}
	sent := hand(ctx, n, steadyNotices, steadyRate, "gpu.xid")
	var rss []float64
	var last frame.Usage
	for end := time.Now().Add(steadyNotices/steadyRate*time.Second + steadyWait); ; {
		if err := frame.Sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
		if last, err = frame.Read(n.pid()); err != nil {
			return nil, err
		}
		rss = append(rss, last.RSS)
		if sent.over() && h.has(sent) || time.Now().After(end) {
			break
		}
	}
	v, err := judgeNotices(sent, h, nil)
	if err != nil {
		return nil, err
	}
	f := v.figures()
	f["cpu"] = float64((last.CPU - before.CPU).Microseconds()) / float64(v.delivered)
	f["rss"] = frame.Median(rss)
	f["requests"] = float64(h.count()) / float64(v.delivered)
	return f, nil
}

// measureFaults measures what becomes of what is handed over where receivers
// fail and the notifier is killed.
func measureFaults(ctx context.Context, w *frame.World, resend time.Duration, of func(*frame.World, *hooks) notifier) (_ frame.Figures, err error) {
	h, err := newHooks(well, well, refuses, hangs, cuts)
	if err != nil {
		return nil, err
	}
	defer h.close()
	ctx, stopHanding := context.WithCancel(ctx)
	defer stopHanding()
	n := of(w, h)
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	running := true
	defer func() {
		if running {
			err = errors.Join(err, n.stop())
		}
	}()
	h.begin()
	begin := time.Now()
	sent := hand(ctx, n, faultNotices, faultRate, "gpu.xid")
	repeat, cancel := context.WithCancel(ctx)
	defer cancel()
	if resend > 0 {
		go sent.repeat(repeat, n, resend)
	}
	if err := frame.Sleep(ctx, faultKill); err != nil {
		return nil, err
	}
	if err := n.kill(); err != nil {
		running = false
		return nil, err
	}
	if err := frame.Sleep(ctx, faultDown); err != nil {
		running = false
		return nil, err
	}
	if err := n.start(ctx); err != nil {
		running = false
		return nil, err
	}
	if err := frame.Sleep(ctx, time.Until(begin.Add(faultLength))); err != nil {
		return nil, err
	}
	cancel()
	running = false
	if err := n.stop(); err != nil {
		return nil, err
	}
	receipts, err := n.receipts(ctx)
	if err != nil {
		return nil, err
	}
	v, err := judgeNotices(sent, h, receipts)
	if err != nil {
		return nil, err
	}
	f := v.figures()
	if last := h.last(2); !last.IsZero() {
		f["caught"] = last.Sub(begin.Add(faultOutage)).Seconds()
	}
	return f, nil
}

// judgeNotices judges what was handed over, all of which must have been taken.
func judgeNotices(sent *handing, h *hooks, receipts []receipt) (verdict, error) {
	if !sent.over() {
		return verdict{}, errors.New("not all was taken: the process is gone or refuses")
	}
	v := judge(sent.times(), h.names(), h.well(), h.seen(), receipts)
	if v.delivered == 0 {
		return v, errors.New("nothing was delivered")
	}
	return v, nil
}

// Figures are those that both entries have.
func (v verdict) figures() frame.Figures {
	slices.Sort(v.waits)
	return frame.Figures{
		"delivered": 100 * float64(v.delivered) / float64(v.pairs), "lost": float64(v.lost), "waiting": float64(v.waiting), "duplicates": float64(v.duplicates),
		"attempts": float64(v.attempts), "proved": 100 * float64(v.proved) / float64(v.attempts),
		"median": quantile(v.waits, 0.5), "p99": quantile(v.waits, 0.99),
	}
}
