// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
)

// claims reads each ResourceClaim once, when the kubelet first lists it, and
// forgets it when the kubelet no longer does.
type claims struct {
	get     func(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
	tel     Telemetry
	changed func() // called when there are new claims in read

	read atomic.Pointer[map[dra.ClaimID]dra.Claim]
	wake chan struct{} // has room for one

	mu     sync.Mutex
	wanted map[dra.ClaimID]dra.Device // each with one device that it has to have
}

func newClaims(get func(context.Context, string, string) (*resourcev1.ResourceClaim, error), tel Telemetry, changed func()) *claims {
	c := &claims{get: get, tel: tel, changed: changed, wake: make(chan struct{}, 1)}
	c.read.Store(&map[dra.ClaimID]dra.Claim{})
	return c
}

// want sets the claims that the kubelet lists now. It does not wait.
func (c *claims) want(wanted map[dra.ClaimID]dra.Device) {
	c.mu.Lock()
	same := maps.Equal(c.wanted, wanted)
	c.wanted = wanted
	c.mu.Unlock()
	if same {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

const maxBackoff = 30 * time.Second

// backoff is the time to wait after so many failures in a row.
func backoff(failures int) time.Duration {
	return min(maxBackoff, time.Second<<min(failures-1, 10))
}

// waiting is a claim that could not be read, alone.
type waiting struct {
	failures int
	until    time.Time
}

// run reads until ctx ends, one claim at a time. When the API as a whole does not
// answer, or refuses, all of them wait.
func (c *claims) run(ctx context.Context) {
	requests := c.tel.requests(resourceClaims)
	wait := map[dra.ClaimID]waiting{}
	var all waiting
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		if time.Now().Before(all.until) {
			timer.Reset(time.Until(all.until))
			continue
		}
		next, ok := c.round(ctx, requests, wait)
		if ok {
			all = waiting{}
		} else {
			all.failures++
			all.until = time.Now().Add(backoff(all.failures))
			next = all.until
		}
		if !next.IsZero() {
			timer.Reset(max(0, time.Until(next)))
		}
	}
}

// round reads what is wanted, not yet read, and does not wait. It gives the time
// at which the first of those that wait is due, and false where the API failed.
func (c *claims) round(ctx context.Context, requests *k8sclient.Requests, wait map[dra.ClaimID]waiting) (next time.Time, ok bool) {
	c.mu.Lock()
	wanted := c.wanted
	c.mu.Unlock()
	maps.DeleteFunc(wait, func(id dra.ClaimID, _ waiting) bool { _, still := wanted[id]; return !still })

	read := map[dra.ClaimID]dra.Claim{}
	known := *c.read.Load()
	news := false
	ok = true
	for id, device := range wanted {
		if already, is := known[id]; is {
			read[id] = already
			continue
		}
		w := wait[id]
		if ok && !time.Now().Before(w.until) && ctx.Err() == nil {
			got, res, err := c.ask(ctx, id, device)
			requests.Ended(ctx, res, err)
			switch res {
			case k8sclient.ResultOK:
				read[id] = got
				delete(wait, id)
				news = true
				continue
			case resultNotFound, resultOther:
				w.failures++
				w.until = time.Now().Add(backoff(w.failures))
				wait[id] = w
			default:
				ok = false
			}
		}
		if next.IsZero() || w.until.Before(next) {
			next = w.until
		}
	}
	c.read.Store(&read)
	if news {
		c.changed()
	}
	return next, ok
}

var (
	errNoAllocation = errors.New("the claim has no allocation")
	errOther        = errors.New("the claim has other devices than the kubelet reports")
)

func (c *claims) ask(ctx context.Context, id dra.ClaimID, device dra.Device) (dra.Claim, k8sclient.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, k8sclient.AnswerTimeout)
	defer cancel()
	got, err := c.get(ctx, id.Namespace, id.Name)
	switch res := k8sclient.ResultOf(err); {
	case res == k8sclient.ResultNotServed:
		return dra.Claim{}, resultNotFound, err
	case err != nil:
		return dra.Claim{}, res, err
	case got.Status.Allocation == nil:
		return dra.Claim{}, resultOther, errNoAllocation
	}
	out := dra.Claim{Held: map[dra.Device]bool{}, Looked: map[dra.Device]bool{}}
	for _, r := range got.Status.Allocation.Devices.Results {
		d := dra.Device{Pool: dra.Pool{Driver: r.Driver, Name: r.Pool}, Device: r.Device}
		if r.AdminAccess != nil && *r.AdminAccess {
			out.Looked[d] = true
		} else {
			out.Held[d] = true
		}
	}
	if !out.Held[device] && !out.Looked[device] {
		return dra.Claim{}, resultOther, errOther
	}
	return out, k8sclient.ResultOK, nil
}
