// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is like the exporter: one connection for each request.
var client = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ask sends one request and returns the status and what went wrong.
func ask(t *testing.T, r *Receiver, within time.Duration) (status int, body string, header http.Header, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(r.port)+"/hook", strings.NewReader("{}"))
	require.NoError(t, err)
	req.Header.Set("webhook-id", "e1")
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), resp.Header, err
}

// receiver does the same thing with every request.
func receiver(t *testing.T, p profile) *Receiver {
	t.Helper()
	r, err := Listen(1, 0, 100, 0)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults.profile = p
	return r
}

func always(c chance) profile {
	c.thousandths = 1000
	return profile{chances: []chance{c}}
}

// Each fault looks to a sender as it should, and the receiver's account states
// what it did.
func TestReceiverFaults(t *testing.T) {
	isReset := func(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }
	for _, tc := range []struct {
		name    string
		profile profile
		within  time.Duration
		status  int // that the sender sees
		noted   int // that the receiver notes
		read    bool
		fails   func(error) bool
	}{
		{name: "well", status: 204, noted: 204, read: true},
		{name: "unavailable", profile: always(status(503, 0)), status: 503, noted: 503, read: true},
		{name: "limited", profile: always(limited(429, 0)), status: 429, noted: 429, read: true},
		{name: "redirect", profile: always(status(302, 0)), status: 302, noted: 302, read: true},
		{name: "cut first", profile: always(does(cutFirst, 0)), fails: isReset},
		{name: "cut when read", profile: always(does(cutRead, 0)), read: true, fails: isReset},
		{name: "babble", profile: always(does(babble, 0)), read: true, fails: func(err error) bool { return strings.Contains(err.Error(), "malformed HTTP") }},
		{name: "hang", profile: always(does(hang, 0)), within: time.Second, read: true, fails: func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{name: "cut answer", profile: always(does(cutOK, 0)), status: 200, noted: 200, read: true, fails: func(err error) bool { return err != nil }},
		{name: "drip", profile: always(does(drip, 0)), status: 200, noted: 200, read: true},
		{name: "drip on", profile: always(does(dripOn, 0)), within: time.Second, status: 200, noted: 200, read: true, fails: func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{name: "gone", profile: profile{goneAfter: 0.01}, status: 204, noted: 204, read: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := receiver(t, tc.profile)
			within := tc.within
			if within == 0 {
				within = time.Minute
			}
			code, _, header, err := ask(t, r, within)
			if tc.fails != nil {
				require.Error(t, err)
				// An answer that is cut may be cut before the sender reads its
				// first byte.
				assert.True(t, tc.fails(err), "%v", err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, tc.status, code)
			}
			assert.Equal(t, tc.status == 429, header.Get("Retry-After") != "")
			assert.Equal(t, 1, r.Connections())
			requests := r.Requests()
			if !tc.read {
				assert.Empty(t, requests)
				return
			}
			require.Len(t, requests, 1)
			assert.Equal(t, "e1", requests[0].WebhookID)
			assert.Equal(t, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", requests[0].Body) // of {}
			assert.Equal(t, tc.noted, requests[0].Status)
			assert.Equal(t, tc.noted/100 == 2, r.Answered() == 1)
		})
	}
}

// A receiver that is shut refuses connections, counts none, and comes back on
// its port.
func TestReceiverRefuses(t *testing.T) {
	r := receiver(t, profile{})
	r.shut()
	_, _, _, err := ask(t, r, time.Minute)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Zero(t, r.Connections())

	require.NoError(t, r.open())
	code, _, _, err := ask(t, r, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, 204, code)
	assert.Equal(t, 1, r.Connections())
}

// The seed alone decides what a receiver does and when it is away.
func TestScheduleRepeats(t *testing.T) {
	draw := func(seed uint64, n int) (faults []fault, times []time.Duration) {
		s := newSchedule(seed, n, 100)
		for range 200 {
			faults = append(faults, s.next())
		}
		if s.upFor > 0 {
			for range 10 {
				times = append(times, s.up(), s.down())
			}
		}
		return faults, times
	}
	for n, p := range profiles {
		t.Run(p.name, func(t *testing.T) {
			faults, times := draw(7, n)
			again, timesAgain := draw(7, n)
			assert.Equal(t, faults, again)
			assert.Equal(t, times, timesAgain)
			for _, d := range times {
				assert.Positive(t, d)
				assert.LessOrEqual(t, d, max(p.upFor, p.downFor))
			}
			if len(p.chances) > 0 {
				other, _ := draw(8, n)
				assert.NotEqual(t, faults, other)
			}
			gone := 0
			for _, f := range faults {
				if f.status == http.StatusGone {
					gone++
				}
			}
			if p.goneAfter > 0 {
				assert.Equal(t, 130, gone, "after 70 of 100 events")
			} else {
				assert.Zero(t, gone)
			}
		})
	}
	well, _ := draw(7, 0)
	assert.NotContains(t, well, fault{action: answer, status: 503})
	assert.Equal(t, "well-0", nameOf(0))
	assert.Equal(t, "well-7", nameOf(7), "profiles come in turn")
}

// A profile's filter is the one in the collector's configuration.
func TestWants(t *testing.T) {
	xid := Event{Name: "gpu.xid", Severity: severityError}
	idle := Event{Name: "gpu.idle_held", Severity: severityInfo}
	partial := Event{Name: "gpu.service.partial", Severity: severityWarn}
	for _, tc := range []struct {
		profile profile
		wants   []Event
		not     []Event
	}{
		{profile{}, []Event{xid, idle, partial}, nil},
		{profile{events: []string{"gpu.service.*", "gpu.xid"}}, []Event{xid, partial}, []Event{idle}},
		{profile{minSeverity: "warn"}, []Event{xid, partial}, []Event{idle}},
		{profile{minSeverity: "error", events: []string{"gpu.service.*"}}, nil, []Event{xid, idle, partial}},
	} {
		for _, e := range tc.wants {
			assert.True(t, tc.profile.wants(e), "%+v %+v", tc.profile, e)
		}
		for _, e := range tc.not {
			assert.False(t, tc.profile.wants(e), "%+v %+v", tc.profile, e)
		}
	}
}
