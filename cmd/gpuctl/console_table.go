// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// none is what there is no data of.
const none = "-"

// table writes rows in columns.
type table struct {
	w   *tabwriter.Writer
	err error
}

func newTable(w io.Writer, columns ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t *table) row(cells ...string) {
	if _, err := fmt.Fprintln(t.w, strings.Join(cells, "\t")); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) end() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	return t.err
}

// name shows a name, which may have been chosen to do harm to a terminal.
func name(s string) string {
	s = safetext.Strip(s, 253)
	if s == "" {
		return none
	}
	return s
}

func named(s *string) string {
	if s == nil {
		return none
	}
	return name(*s)
}

func percent(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v*100, 'f', 0, 64) + "%"
}

func gib(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v/(1<<30), 'f', 1, 64)
}

// memory shows what is used of what there is.
func memory(used, total *float64) string {
	if used == nil && total == nil {
		return none
	}
	return gib(used) + "/" + gib(total) + " GiB"
}

func watts(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v, 'f', 0, 64) + " W"
}

// over appends how many of the devices a figure covers, where that is not all.
func over(figure string, c *consoleapi.Coverage) string {
	if figure == none || c == nil || c.Devices == 0 || c.Devices == c.Of {
		return figure
	}
	return fmt.Sprintf("%s (%d of %d)", figure, c.Devices, c.Of)
}

// held shows the devices of a service, and how many of them are silent.
func held(d *consoleapi.ServiceDevices) string {
	text := count(d.Held)
	if d.Missing != nil && *d.Missing > 0 {
		text += fmt.Sprintf(" (%d silent)", *d.Missing)
	}
	if d.Frozen > 0 {
		text += fmt.Sprintf(" (%d frozen)", d.Frozen)
	}
	if h := d.Health; h != nil {
		for _, state := range []struct {
			n    int
			word string
		}{{h.Failed, "failed"}, {h.PredictedFailure, "predicted to fail"}, {h.Degraded, "degraded"}} {
			if state.n > 0 {
				text += fmt.Sprintf(" (%d %s)", state.n, state.word)
			}
		}
	}
	return text
}

// wellbeing is the health of a board or a node, and what to do about it or how much was
// looked at.
func wellbeing(h *consoleapi.Health) string {
	if h == nil {
		return none // that of its board
	}
	text := name(string(cmp.Or(h.State, consoleapi.HealthUnknown)))
	if h.State.AtLeast(consoleapi.HealthDegraded) && h.Action != nil {
		return text + ": " + name(*h.Action)
	}
	if h.Coverage != nil {
		if few := 3*h.Coverage.WithData < h.Coverage.Applicable; few && h.State == consoleapi.HealthOK {
			text += " so far" // most of what could be wrong cannot be seen
		}
		text += fmt.Sprintf(", %d of %d checks", h.Coverage.WithData, h.Coverage.Applicable)
	}
	return text
}

func count(n *int) string {
	if n == nil {
		return none
	}
	return strconv.Itoa(*n)
}

func age(t consoleapi.Told) string {
	if t.DataAge == nil {
		return none
	}
	text := (time.Duration(*t.DataAge) * time.Second).String()
	if t.Stale {
		text += " stale"
	}
	return text
}

// fresh prints how old an answer's data is.
func fresh(w io.Writer, f consoleapi.Freshness) {
	switch {
	case f.DataAge == nil:
		fmt.Fprintln(w, "There is no data.")
	case f.Stale:
		fmt.Fprintf(w, "STALE: the newest data is %v old; this was so, and need not be so any more.\n", (time.Duration(*f.DataAge) * time.Second))
	}
}

// state is the most pressing reason to look at a service.
func state(s *consoleapi.Service) string {
	if len(s.Attention) == 0 {
		return "ok"
	}
	return name(string(s.Attention[0]))
}

// inMean shows how many of the settled pods are in the averages, and the others.
func inMean(p consoleapi.PodCounts) string {
	text := count(p.InMean) + "/" + count(p.Settled)
	for _, other := range []struct {
		n    *int
		what string
	}{{p.Warming, "warming"}, {p.NotRunning, "not running"}} {
		if other.n != nil && *other.n > 0 {
			text += fmt.Sprintf(" +%d %s", *other.n, other.what)
		}
	}
	return text
}

// ids shortens the ids of devices to what distinguishes them on a node.
func ids(devices []consoleapi.Device) string {
	var all []string
	for _, d := range devices {
		switch {
		case d.Index != nil && d.MIGInstance != nil:
			all = append(all, name(*d.Index)+"/"+name(*d.MIGInstance))
		case d.Index != nil && d.Partition != nil:
			all = append(all, name(*d.Index)+"/"+name(*d.Partition))
		case d.Index != nil:
			all = append(all, name(*d.Index))
		default:
			all = append(all, name(d.ID))
		}
	}
	if len(all) == 0 {
		return none
	}
	return strings.Join(all, ",")
}

// unitOf is a pod, or the number of the job, which stands beside its node.
func unitOf(p *consoleapi.Pod) string {
	if p.Job == nil || p.Job.Nested {
		return name(p.Pod)
	}
	return name(p.Job.ID)
}

func userOf(j *consoleapi.Job) string {
	if j == nil {
		return none
	}
	return named(j.User)
}

// ownerOf is a pod, a job with its user, or both.
func ownerOf(h *consoleapi.Holder) string {
	pod := name(h.Namespace) + "/" + name(h.Pod)
	if h.Job == nil {
		return pod
	}
	job := "job " + name(h.Job.ID)
	if h.Job.User != nil {
		job += " of " + name(*h.Job.User)
	}
	if h.Job.Nested {
		return pod + " (" + job + ")"
	}
	return name(h.Namespace) + "/" + job
}

// inferenceColumns are those of -o wide, which inferenceCells fills.
var inferenceColumns = []string{"TTFT-P95", "TOKENS/S", "WAITING/RUNNING", "KV-CACHE"}

func inferenceCells(i *consoleapi.Inference) []string {
	i = cmp.Or(i, &consoleapi.Inference{})
	requests := number(i.Waiting) + "/" + number(i.Running)
	if i.Waiting == nil && i.Running == nil {
		requests = none
	}
	return []string{seconds(i.TimeToFirstToken), number(i.OutputTokens), requests, percent(i.KVCache)}
}

// seconds shows a latency: 84 ms, 1.2 s.
func seconds(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v < 0.9995:
		return strconv.FormatFloat(*v*1000, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(*v, 'f', 1, 64) + " s"
	}
}

// number shows a figure with one decimal below 10, unless it is whole.
func number(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v < 9.95 && *v != float64(int(*v)):
		return strconv.FormatFloat(*v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
}
