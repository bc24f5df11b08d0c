// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// eventFilter selects events; empty fields select all.
type eventFilter struct {
	text, name, severity        string
	cluster, namespace, service string
	active                      bool
	newest                      int
}

func newEvents() *command {
	c := &consoleClient{}
	var q eventFilter
	var follow bool
	var every time.Duration
	var acknowledge string
	return &command{
		name: "events", args: "[-q TEXT] [--active] [--follow] [--acknowledge ID] [--check] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "events and what became of their webhooks, the newest first",
		long: "--follow prints what comes from now on as well, the oldest first; with -o json one event a line.\n--acknowledge takes the attention from a notice (an XID, uncorrected ECC errors), which nothing else\n" +
			"ends before a day is over; its id is that of -o json. --check is about raised conditions and such\nnotices, those with severity info aside.\n" + checkedLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			c.checkFlag(f)
			f.StringVarP(&q.text, "query", "q", "", "only events with this in their sentence, name or subject")
			f.StringVar(&q.name, "name", "", "only events of this name, as gpu.xid")
			f.StringVar(&q.severity, "min-severity", "", "info, warn or error: only these and worse, and what clears them")
			f.StringVar(&q.cluster, "cluster", "", "with --namespace and --service: of this cluster")
			f.StringVar(&q.namespace, "namespace", "", "with --service: only events about that service")
			f.StringVar(&q.service, "service", "", "with --namespace: only events about that service")
			f.BoolVar(&q.active, "active", false, "only conditions that are raised, and notices that need attention")
			f.IntVarP(&q.newest, "newest", "n", 50, "how many to show at most; 0 is all")
			f.BoolVarP(&follow, "follow", "f", false, "go on until it is interrupted")
			f.DurationVar(&every, "interval", 2*time.Second, "with --follow: time between two looks")
			f.StringVar(&acknowledge, "acknowledge", "", "the id of a notice to acknowledge")
		},
		run: c.run(func(ctx context.Context, s streams) error {
			switch {
			case every < time.Second || q.newest < 0:
				return errors.New("--interval is at least 1s, and --newest 0 or more")
			case follow && c.check:
				return errors.New("--follow and --check exclude each other: one goes on, the other ends with an exit code")
			case (q.namespace == "") != (q.service == "") || q.cluster != "" && q.service == "":
				return errors.New("--namespace and --service belong together, and --cluster to them")
			case acknowledge != "":
				return c.acknowledge(ctx, s, acknowledge)
			case follow:
				return c.follow(ctx, s, q, every)
			}
			ctx, cancel := context.WithTimeout(ctx, c.timeout)
			defer cancel()
			all, err := c.events(ctx, q, nil)
			if err != nil {
				return err
			}
			if c.output == "json" {
				err = writeIndented(s.out, all)
			} else {
				err = eventsTable(s.out, all)
			}
			if err == nil && c.check {
				err = c.checkEvents(ctx, q, all)
			}
			return err
		}),
	}
}

// checkEvents fails if an event needs attention, shown or not.
func (c *consoleClient) checkEvents(ctx context.Context, q eventFilter, shown *consoleapi.EventsAnswer) error {
	if len(shown.Events) < shown.Total && !slices.ContainsFunc(shown.Events, pressingEvent) {
		q.active, q.newest = true, 0
		var err error
		if shown, err = c.events(ctx, q, nil); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(shown.Events, pressingEvent) {
		return errFailed
	}
	return nil
}

func pressingEvent(e consoleapi.Event) bool {
	return e.Active && (e.Severity == nil || !slices.Contains([]string{"trace", "debug", "info"}, *e.Severity))
}

// events are the newest that a filter selects, to the page after which it is
// enough; nil is never.
func (c *consoleClient) events(ctx context.Context, q eventFilter, enough func(page []consoleapi.Event) bool) (*consoleapi.EventsAnswer, error) {
	query := url.Values{}
	for key, value := range map[string]string{
		"q": q.text, "name": q.name, "min_severity": q.severity, "cluster": q.cluster, "namespace": q.namespace, "service": q.service,
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if q.active {
		query.Set("active", strconv.FormatBool(q.active))
	}
	all := &consoleapi.EventsAnswer{Events: []consoleapi.Event{}}
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.EventsAnswer
		if err := c.get(ctx, "events", query, &page); err != nil {
			return nil, err
		}
		next := page.Next
		if enough != nil && enough(page.Events) {
			next = nil
		}
		page.Events, page.Next = append(all.Events, page.Events...), nil
		*all = page
		if q.newest > 0 && len(all.Events) >= q.newest {
			all.Events, next = all.Events[:q.newest], nil
		}
		return next, nil
	})
}

// remembered is how many events --follow knows not to print again: more than the
// looks of an hour can show.
const remembered = 10_000

// follow prints the newest events, and then all that comes, until ctx ends.
func (c *consoleClient) follow(ctx context.Context, s streams, q eventFilter, every time.Duration) error {
	printed := map[string]bool{}
	first, from := true, time.Time{}
	// What is older than the oldest that was printed at first is not news.
	reached := func(page []consoleapi.Event) bool {
		n := len(page)
		return n == 0 || printed[page[n-1].ID] || page[n-1].Time.Before(from)
	}
	for {
		var all *consoleapi.EventsAnswer
		var err error
		if first {
			all, err = c.look(ctx, q, nil)
		} else {
			all, err = c.look(ctx, q, reached)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && first:
			return err
		case err != nil: // it may come back, and nothing is missed: the log has it
			fmt.Fprintln(s.err, "gpuctl:", err)
		default:
			if n := len(all.Events); first && n > 0 && n == q.newest {
				from = all.Events[n-1].Time
			}
			first, q.newest = false, 0 // of what comes, all
			all.Events = slices.DeleteFunc(all.Events, func(e consoleapi.Event) bool { return e.Time.Before(from) })
			if err := c.printNew(s.out, all, printed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func (c *consoleClient) look(ctx context.Context, q eventFilter, enough func([]consoleapi.Event) bool) (*consoleapi.EventsAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.events(ctx, q, enough)
}

func (c *consoleClient) printNew(w io.Writer, all *consoleapi.EventsAnswer, printed map[string]bool) error {
	if len(printed) > remembered {
		clear(printed)
		for _, e := range all.Events {
			printed[e.ID] = true
		}
	}
	for _, e := range slices.Backward(all.Events) {
		if printed[e.ID] {
			continue
		}
		printed[e.ID] = true
		var err error
		if c.output == "json" {
			err = json.NewEncoder(w).Encode(e)
		} else {
			_, err = fmt.Fprintf(w, "%s  %-12s %s: %s\n", e.Time.Local().Format(time.DateTime), eventState(&e), name(e.Name), sentenceOf(&e))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *consoleClient) acknowledge(ctx context.Context, s streams, id string) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var done consoleapi.AcknowledgeAnswer
	if err := c.post(ctx, "acknowledge", consoleapi.Acknowledgement{EventID: id}, &done); err != nil {
		return err
	}
	if c.output == "json" {
		return writeIndented(s.out, done)
	}
	_, err := fmt.Fprintf(s.out, "acknowledged: %s\n", sentenceOf(&done.Event))
	return err
}

func eventsTable(w io.Writer, all *consoleapi.EventsAnswer) error {
	t := newTable(w, "TIME", "STATE", "EVENT", "DELIVERIES", "WHAT")
	for i := range all.Events {
		e := &all.Events[i]
		t.row(e.Time.Local().Format(time.DateTime), eventState(e), name(e.Name), deliveriesOf(e.Deliveries), sentenceOf(e))
	}
	if err := t.end(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d of %d events; raised conditions: %d; notices that need attention: %d\n", len(all.Events), all.Total, all.Raised, all.Notices)
	return err
}

// eventState is what an event is now: its severity while it is active.
func eventState(e *consoleapi.Event) string {
	switch {
	case e.Acknowledged != nil:
		return "acknowledged"
	case e.State != nil && *e.State == "cleared":
		return "cleared"
	case e.Active:
		return strings.ToUpper(named(e.Severity))
	default:
		return named(e.Severity)
	}
}

func sentenceOf(e *consoleapi.Event) string {
	if e.Body == nil {
		return none
	}
	return cmp.Or(safetext.Strip(*e.Body, 2000), none)
}

// deliveriesOf counts the endpoints that have an event, and names those that do
// not. The last attempt of each decides.
func deliveriesOf(deliveries []consoleapi.Delivery) string {
	last := map[string]consoleapi.Delivery{}
	for _, d := range deliveries { // oldest first
		last[d.Receiver] = d
	}
	if len(last) == 0 {
		return none
	}
	delivered, others := 0, []string{}
	for receiver, d := range last {
		switch {
		case d.Outcome == "succeeded":
			delivered++
		case d.NextAttempt != nil:
			others = append(others, name(receiver)+" waits")
		default:
			others = append(others, name(receiver)+" "+name(d.Outcome))
		}
	}
	slices.Sort(others)
	return strings.Join(append([]string{fmt.Sprintf("%d of %d", delivered, len(last))}, others...), ", ")
}
