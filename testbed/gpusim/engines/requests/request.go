// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package requests

import "time"

// Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	Success   Outcome = "success"
	Failed    Outcome = "error"
	Cancelled Outcome = "cancelled"
	Rejected  Outcome = "rejected"
	// Lost is a request that the engine took with it when it stopped: no page counts it.
	Lost Outcome = "lost"
)

// Reason is why a request ended.
type Reason int

// The reasons.
const (
	Active     Reason = iota // not ended
	Stop                     // the model had no more to add
	Length                   // as many tokens as were asked for
	Abort                    // the client went away
	Error                    // the engine failed
	Overloaded               // the queue was full
	Stopped                  // the engine was
	reasons
)

var reasonNames = [reasons]string{"", "stop", "length", "abort", "error", "overloaded", "stopped"}

func (r Reason) String() string { return reasonNames[r] }

// Outcome of the reason.
func (r Reason) Outcome() Outcome {
	switch r {
	case Stop, Length:
		return Success
	case Abort:
		return Cancelled
	case Overloaded:
		return Rejected
	case Stopped:
		return Lost
	default:
		return Failed
	}
}

// Request is one request. Times are since the start of the fleet; those that have not
// come yet are negative.
type Request struct {
	Model   string
	Adapter string
	Prompt  int // tokens
	Cached  int // of the prompt, found in the prefix cache
	Arrival time.Duration
	// Scheduled is when it first left the queue.
	Scheduled   time.Duration
	End         time.Duration
	Reason      Reason
	Preemptions int
	Skipped     int // tokens that speculation added

	tokens []uint32 // of each token, microseconds since the arrival
	waits  []wait
	target int // tokens until it ends
	most   int // tokens that the client allows
	fails  int // error before this token; 0 never
	held   int // blocks
	fresh  bool
	last   time.Duration // of the last token, or when it was scheduled
}

// wait is a time in the queue; until is negative while it lasts.
type wait struct{ from, until time.Duration }

// Output is how many tokens were made.
func (r *Request) Output() int { return len(r.tokens) }

// Token is when token i, from 0, was made.
func (r *Request) Token(i int) time.Duration {
	return r.Arrival + time.Duration(r.tokens[i])*time.Microsecond
}

func (r *Request) emit(at time.Duration, n int) {
	for range n {
		r.tokens = append(r.tokens, uint32((at-r.Arrival)/time.Microsecond))
	}
	r.last = at
}

func (r *Request) enqueue(at time.Duration) { r.waits = append(r.waits, wait{at, -1}) }

func (r *Request) dequeue(at time.Duration) {
	if last := &r.waits[len(r.waits)-1]; last.until < 0 {
		last.until = at
	}
}

// between is how long a request waited within a window.
func (w wait) between(from, to time.Duration) time.Duration {
	until := w.until
	if until < 0 {
		until = to
	}
	return max(min(until, to)-max(w.from, from), 0)
}
