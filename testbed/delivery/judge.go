// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"sort"
	"time"
)

// Event is one event that was sent to the collector.
type Event struct {
	ID           string
	Name         string
	Severity     int // OpenTelemetry's number
	Acknowledged bool
	// Posts is how often it may have reached the collector: more than once where
	// no answer came. Each time is a delivery of its own.
	Posts int
}

// Request is one request of which a receiver has read the header.
type Request struct {
	Receiver  string
	WebhookID string // the event's id; of several that were grouped, another one
	Body      string // SHA-256, hexadecimal; empty if it did not come whole
	Arrived   time.Time
	Status    int // the answer; 0 where the receiver broke off without one
}

// Record is an audit record, as far as the judge needs it.
type Record struct {
	ID          string
	Time        time.Time // start of the attempt
	WebhookID   string
	EventIDs    []string
	Receiver    string
	Body        string // SHA-256, hexadecimal; empty where there was none
	Attempt     int    // 0 if none was made
	Outcome     string
	Status      int
	ErrorType   string
	NextAttempt time.Time // zero: there is none
}

// Facts are the accounts to be compared.
type Facts struct {
	Events []Event
	// Wants reports by receiver whether it wants an event.
	Wants map[string]func(Event) bool
	// Connections is how many connections each receiver accepted, also those
	// that it broke off before it read a request.
	Connections map[string]int
	Requests    []Request
	Records     []Record
	// LastKill is when the collector was last killed; zero if it never was.
	LastKill time.Time
}

// Verdict is what came of it. The first two count pairs of an acknowledged
// event and a receiver that wants it; all others should be empty, and hold one
// line for each finding.
type Verdict struct {
	Delivered int
	GivenUp   int

	Lost      []string // pairs that are neither
	Unaudited []string // attempts without a record
	Doubled   []string // records that report the same attempt again
	Invented  []string // records of what did not happen
	Open      []string // records that promise an attempt that never came
	Unwanted  []string // deliveries that no receiver asked for
}

// Summary is the verdict in one line.
func (v *Verdict) Summary() string {
	return fmt.Sprintf("delivered %d, given up %d, lost %d, unaudited %d", v.Delivered, v.GivenUp, len(v.Lost), len(v.Unaudited))
}

// Findings are all that should not be, the worst first.
func (v *Verdict) Findings() []string {
	var all []string
	for _, kind := range []struct {
		what string
		list []string
	}{
		{"lost", v.Lost}, {"unaudited", v.Unaudited}, {"doubled", v.Doubled},
		{"invented", v.Invented}, {"open", v.Open}, {"unwanted", v.Unwanted},
	} {
		for _, line := range kind.list {
			all = append(all, kind.what+": "+line)
		}
	}
	return all
}

// pair is an event on its way to a receiver.
type pair struct{ receiver, event string }

func (p pair) String() string { return p.event + " to " + p.receiver }

// account is what is known of a pair.
type account struct {
	requests []Request
	records  []Record
}

// Judge compares the accounts.
func Judge(f Facts) *Verdict {
	v := &Verdict{}
	accounts := v.sort(f)
	posts := map[string]int{}
	known := map[pair]bool{}
	missing := map[string]int{} // requests without a record, by receiver
	for _, event := range f.Events {
		posts[event.ID] = event.Posts
		for _, receiver := range receivers(f) {
			p := pair{receiver, event.ID}
			known[p] = f.Wants[receiver](event)
			if known[p] && event.Acknowledged {
				v.account(p, accounts[p])
			}
		}
	}
	for _, p := range sorted(accounts) {
		a := accounts[p]
		if !known[p] {
			v.Unwanted = append(v.Unwanted, fmt.Sprintf("%v: %d requests, %d records", p, len(a.requests), len(a.records)))
		}
		missing[p.receiver] += v.match(p, a)
		v.chains(p, a, posts[p.event])
	}
	v.connections(f, missing)
	v.interrupted(f)
	return v
}

// sort sorts requests and records into accounts. A record with an id that was
// seen before is a finding, and counts once.
func (v *Verdict) sort(f Facts) map[pair]*account {
	accounts := map[pair]*account{}
	of := func(receiver, event string) *account {
		p := pair{receiver, event}
		if accounts[p] == nil {
			accounts[p] = &account{}
		}
		return accounts[p]
	}
	ids := map[string]bool{}
	groups := map[pair][]string{} // events by receiver and webhook id, where several travelled together
	for _, r := range f.Records {
		if ids[r.ID] {
			v.Doubled = append(v.Doubled, fmt.Sprintf("record %s is duplicated", r.ID))
			continue
		}
		ids[r.ID] = true
		for _, event := range r.EventIDs {
			a := of(r.Receiver, event)
			a.records = append(a.records, r)
		}
		if len(r.EventIDs) > 1 {
			groups[pair{r.Receiver, r.WebhookID}] = r.EventIDs
		}
	}
	for _, r := range f.Requests {
		// Only the records can report which events were in a group. A group
		// without one keeps its own id, and is found to be in none.
		events := groups[pair{r.Receiver, r.WebhookID}]
		if events == nil {
			events = []string{r.WebhookID}
		}
		for _, event := range events {
			a := of(r.Receiver, event)
			a.requests = append(a.requests, r)
		}
	}
	return accounts
}

// account reports what became of a pair that must have ended.
func (v *Verdict) account(p pair, a *account) {
	if a == nil {
		v.Lost = append(v.Lost, fmt.Sprintf("%v: no request and no record", p))
		return
	}
	for _, r := range a.requests {
		if r.Status >= 200 && r.Status < 300 {
			v.Delivered++
			return
		}
	}
	for _, r := range a.records {
		if r.Outcome != succeeded && r.NextAttempt.IsZero() {
			v.GivenUp++
			return
		}
	}
	v.Lost = append(v.Lost, fmt.Sprintf("%v: %d requests, none answered 2xx; %d records, none gives it up", p, len(a.requests), len(a.records)))
}

// chains looks at the attempts of a pair in their order: every post begins at
// most one chain, attempt n is made at most once in each, and a record that
// names a next attempt is followed by one.
func (v *Verdict) chains(p pair, a *account, posts int) {
	made := map[int]int{}     // attempts by their number
	promised := map[int]int{} // attempts that a record announces, by their number
	dropped := 0
	for _, r := range a.records {
		if r.Attempt == 0 && r.NextAttempt.IsZero() {
			dropped++
			continue
		}
		made[r.Attempt]++
		if !r.NextAttempt.IsZero() {
			promised[r.Attempt+1]++
		}
	}
	for n, count := range made {
		if count > posts {
			v.Doubled = append(v.Doubled, fmt.Sprintf("%v: %d records of attempt %d, but it was sent %d times", p, count, n, posts))
		}
	}
	broken := 0
	for n, count := range promised {
		broken += max(0, count-made[n])
	}
	// What waits for its next attempt may still be dropped.
	if broken > dropped {
		v.Open = append(v.Open, fmt.Sprintf("%v: %d announced attempts are missing", p, broken-dropped))
	}
}

// connections compares how often a receiver was called with how many attempts
// the records report: this finds attempts that ended before the receiver could
// know which event it was. Those that match found already are left out.
func (v *Verdict) connections(f Facts, missing map[string]int) {
	attempts := map[string]int{}
	for _, r := range f.Records {
		if r.Attempt > 0 {
			attempts[r.Receiver]++
		}
	}
	for _, receiver := range receivers(f) {
		accepted := f.Connections[receiver]
		for range accepted - attempts[receiver] - missing[receiver] {
			v.Unaudited = append(v.Unaudited, fmt.Sprintf("%s accepted %d connections, but the records contain %d attempts", receiver, accepted, attempts[receiver]))
		}
	}
}

// interrupted finds records of interruptions after the last one.
func (v *Verdict) interrupted(f Facts) {
	for _, r := range f.Records {
		if r.ErrorType == interrupted && r.Time.After(f.LastKill) {
			v.Invented = append(v.Invented, fmt.Sprintf("record %s has outcome interrupted, but nothing was killed after %s", r.ID, r.Time))
		}
	}
}

// Words of audit records.
const (
	succeeded   = "succeeded"
	interrupted = "interrupted"
)

func receivers(f Facts) []string {
	names := make([]string, 0, len(f.Wants))
	for name := range f.Wants {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func sorted(accounts map[pair]*account) []pair {
	pairs := make([]pair, 0, len(accounts))
	for p := range accounts {
		pairs = append(pairs, p)
	}
	sort.Slice(pairs, func(i, j int) bool {
		if pairs[i].receiver != pairs[j].receiver {
			return pairs[i].receiver < pairs[j].receiver
		}
		return pairs[i].event < pairs[j].event
	})
	return pairs
}
