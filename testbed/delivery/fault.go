// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"time"
)

// action is what a receiver does with one request.
type action int

const (
	answer   action = iota // with the fault's status
	cutFirst               // reset before anything is read
	cutRead                // reset when the request has been read
	cutOK                  // answer 200 and reset before the answer is whole
	babble                 // answer with something that is not HTTP
	hang                   // never answer
	dripOn                 // answer 200 and send the body a byte at a time, past every timeout
	drip                   // so, but end in time
)

// fault is one draw from a receiver's schedule.
type fault struct {
	action     action
	status     int
	retryAfter int // seconds, 0 for no header
}

// chance is how often a fault comes, in thousandths.
type chance struct {
	fault
	thousandths int
}

// profile is how a receiver misbehaves.
type profile struct {
	name    string
	chances []chance // the rest is answered 204
	// upFor and downFor are the longest times for which it takes and refuses
	// connections in turn; 0 is always up.
	upFor, downFor time.Duration
	// goneAfter is the share of its events after which all is answered 410.
	goneAfter float64
	// queue is the exporter's queue for it as a share of all events, or 0 for
	// one that holds all.
	queue float64
	// events and minSeverity are its filter.
	events      []string
	minSeverity string
	format      string
	// paces reports whether events are sent only as fast as this receiver gets them:
	// one that wants all of them, and gives in in the end.
	paces bool
}

func status(code, thousandths int) chance {
	return chance{fault{action: answer, status: code}, thousandths}
}

func limited(code, thousandths int) chance {
	return chance{fault{action: answer, status: code, retryAfter: 1}, thousandths}
}

func does(a action, thousandths int) chance {
	return chance{fault{action: a, status: http.StatusOK}, thousandths}
}

// profiles are given to the receivers in turn.
var profiles = []profile{
	{name: "well", paces: true},
	{
		name: "refusing", format: "convox",
		chances: []chance{status(503, 120), status(500, 60), status(404, 10), status(408, 20), status(425, 10), status(302, 5), limited(429, 4), limited(503, 2)},
	},
	{
		name: "breaking", paces: true,
		chances: []chance{does(cutFirst, 60), does(cutRead, 60), does(cutOK, 60), does(babble, 20)},
	},
	{
		name: "slow", events: []string{"gpu.service.*", "gpu.xid"},
		chances: []chance{does(hang, 15), does(dripOn, 10), does(drip, 100)},
	},
	{
		name: "absent", upFor: 3 * time.Second, downFor: time.Second, minSeverity: "warn", format: "slack",
		chances: []chance{status(502, 20)},
	},
	{
		name: "leaving", goneAfter: 0.7,
		chances: []chance{status(503, 50), does(hang, 5)},
	},
	{
		name: "narrow", queue: 0.1, format: "alertmanager",
		chances: []chance{does(hang, 10), status(500, 50), does(cutRead, 20)},
	},
}

// wants reports whether a receiver with this profile's filter wants an event.
func (p profile) wants(e Event) bool {
	severity := map[string]int{"": 0, "info": severityInfo, "warn": severityWarn, "error": severityError}[p.minSeverity]
	if e.Severity < severity {
		return false
	}
	for _, pattern := range p.events {
		if ok, _ := path.Match(pattern, e.Name); ok {
			return true
		}
	}
	return len(p.events) == 0
}

// profileOf is that of the n-th receiver, from 0.
func profileOf(n int) profile { return profiles[n%len(profiles)] }

// nameOf is the name of the n-th receiver, from 0.
func nameOf(n int) string { return fmt.Sprintf("%s-%d", profileOf(n).name, n) }

// schedule draws the faults of one receiver. Two with the same seed draw the
// same, in the order in which they are asked. It is not safe for concurrent use.
type schedule struct {
	profile
	rand  *rand.Rand
	drawn int
	gone  int // draws after which it is gone; 0 is never
}

// newSchedule makes the schedule of the n-th of the run's receivers, for that
// many events.
func newSchedule(seed uint64, n, events int) *schedule {
	p := profileOf(n)
	return &schedule{profile: p, rand: rand.New(rand.NewPCG(seed, uint64(n))), gone: int(p.goneAfter * float64(events))}
}

// next draws the next connection's fault.
func (s *schedule) next() fault {
	s.drawn++
	draw := s.rand.IntN(1000)
	if s.gone > 0 && s.drawn > s.gone {
		return fault{action: answer, status: http.StatusGone}
	}
	for _, c := range s.chances {
		if draw < c.thousandths {
			return c.fault
		}
		draw -= c.thousandths
	}
	return fault{action: answer, status: http.StatusNoContent}
}

// up and down draw for how long the receiver takes and refuses connections.
func (s *schedule) up() time.Duration   { return between(s.rand, s.upFor) }
func (s *schedule) down() time.Duration { return between(s.rand, s.downFor) }

// between draws from the upper nine tenths of a time.
func between(r *rand.Rand, longest time.Duration) time.Duration {
	return longest/10 + time.Duration(r.Int64N(int64(longest-longest/10)))
}
