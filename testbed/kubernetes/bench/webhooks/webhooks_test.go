// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	began := time.Unix(1000, 0)
	handed := map[string]time.Time{"a": began, "b": began, "d": began}
	at := func(hook, id string, after time.Duration, status int) arrival {
		return arrival{hook: hook, id: id, at: began.Add(after), status: status}
	}
	arrivals := []arrival{
		at("good", "a", 300*time.Millisecond, 204), at("good", "a", 20*time.Millisecond, 204), // a duplicate; the first counts
		at("good", "b", 40*time.Millisecond, 503), at("good", "b", 80*time.Millisecond, 204),
		at("bad", "a", time.Second, 503), at("bad", "a", 2*time.Second, 0),
		at("bad", "c", time.Second, 204), // was never acknowledged: an attempt all the same
	}
	receipts := []receipt{
		{hook: "good", id: "a", attempt: true, status: 204},                                                      // of one of two
		{hook: "good", id: "b", attempt: true, status: 204}, {hook: "good", id: "b", attempt: true, status: 500}, // another answer proves nothing
		{hook: "bad", id: "a", attempt: true}, {hook: "bad", id: "a", attempt: true}, {hook: "bad", id: "a", attempt: true}, // two were, and one never arrived
		{hook: "bad", id: "a", gaveUp: true},
		{hook: "good", id: "d", waits: true}, {hook: "bad", id: "d", attempt: true, waits: true}, {hook: "bad", id: "d", gaveUp: true},
	}
	v := judge(handed, []string{"good", "bad"}, map[string]bool{"good": true}, arrivals, receipts)
	assert.Equal(t, 6, v.pairs)
	assert.Equal(t, 2, v.delivered)
	assert.Equal(t, 1, v.lost, "b never came to bad, and nothing says so; of a it is said")
	assert.Equal(t, 1, v.waiting, "d at good; at bad it waited, and was given up then")
	assert.Equal(t, 1, v.duplicates)
	assert.Equal(t, 7, v.attempts)
	assert.Equal(t, 4, v.proved)
	assert.ElementsMatch(t, []float64{20, 80}, v.waits)
	assert.InDelta(t, 33.3, v.figures()["delivered"], 0.1)
}

func TestQuantile(t *testing.T) {
	assert.Equal(t, 2.0, quantile([]float64{1, 2, 3}, 0.5))
	assert.Equal(t, 3.0, quantile([]float64{1, 2, 3}, 1))
}

// The receivers do what they are named for, and write it down before it is seen.
func TestHooks(t *testing.T) {
	h, err := newHooks(well, refuses, hangs, cuts)
	require.NoError(t, err)
	defer h.close()
	h.begin()
	post := func(n int, id string) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.list[n].url, strings.NewReader("{}"))
		require.NoError(t, err)
		request.Header.Set("webhook-id", id)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	answered := func(n, want int) {
		t.Helper()
		got, err := post(n, "x")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	answered(0, 204)
	answered(1, 503)
	_, err = post(2, "x")
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	answered(3, 204)
	answered(3, 204)
	_, err = post(3, "x")
	require.Error(t, err)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	h.mu.Lock()
	h.outage = time.Now()
	h.mu.Unlock()
	answered(1, 204)
	answered(2, 204)
	var seen []int
	for _, a := range h.seen() {
		assert.Equal(t, "x", a.id)
		seen = append(seen, a.status)
	}
	assert.Equal(t, []int{204, 503, 0, 204, 204, 0, 204, 204}, seen)
	assert.Equal(t, 8, h.count())
	assert.Equal(t, h.seen()[6].at, h.last(1))
}

func TestIDsOf(t *testing.T) {
	ids, err := idsOf(http.Header{}, []byte(`{"alerts":[{"labels":{"event_id":"a"}},{"labels":{"event_id":"b"}}]}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, ids)
	_, err = idsOf(http.Header{}, []byte(`{}`))
	assert.Error(t, err)
}

// Lines as Alertmanager 0.33 wrote them, shortened.
func TestAlertmanagersReceipts(t *testing.T) {
	h, err := newHooks(well, well, well)
	require.NoError(t, err)
	defer h.close()
	a := newAlertmanager(nil, h, ungrouped)
	for _, line := range []string{
		`{"@timestamp":"2026-11-22T01:39:53.295315875Z","data":{"alertmanagerStartupEvent":{}}}`,
		`{"@timestamp":"2026-11-22T01:39:55.36","data":{"alertGrouped":{"alert":{"details":{"labels":{"labels":[{"key":"event_id","value":"abc-1"}]}}}}}}`,
		`{"data":{"notification":{"alerts":[{"details":{"labels":{"labels":[`, // killed
	} {
		got, err := a.recorded([]byte(line))
		require.NoError(t, err)
		assert.Empty(t, got)
	}
	const sent = `{"data":{"notification":{"alerts":[{"hash":"5087755927374123510","details":{"labels":{"labels":[{"key":"alertname","value":"gpu.xid"},{"key":"event_id","value":"abc-1"}]}}}],"flushId":"1","integration":{"name":"webhook"INDEX}}}}`
	got, err := a.recorded([]byte(strings.Replace(sent, "INDEX", "", 1)))
	require.NoError(t, err)
	assert.Equal(t, []receipt{{hook: "receiver-0", id: "abc-1", attempt: true, status: 204}}, got)
	got, err = a.recorded([]byte(strings.Replace(sent, "INDEX", `,"index":"2"`, 1)))
	require.NoError(t, err)
	assert.Equal(t, []receipt{{hook: "receiver-2", id: "abc-1", attempt: true, status: 204}}, got)
	_, err = a.recorded([]byte(strings.Replace(sent, "INDEX", `,"index":"3"`, 1)))
	assert.Error(t, err)

	got, err = a.logged([]byte(`time=2026-11-22T01:39:55.376Z level=ERROR source=dispatch.go:580 msg="Notify for alerts failed" component=dispatcher aggrGroup="{}:{alertname=\"gpu.xid\", event_id=\"abc-1\"}" num_alerts=1 err="all/webhook[2]: notify retry canceled due to unrecoverable error after 1 attempts: unexpected status code 400\nall/webhook[1]: notify retry canceled due to unrecoverable error after 1 attempts: unexpected status code 400"`), false)
	require.NoError(t, err)
	assert.Equal(t, []receipt{{hook: "receiver-2", id: "abc-1", gaveUp: true}, {hook: "receiver-1", id: "abc-1", gaveUp: true}}, got)
	const again = `level=WARN msg="Notify attempt failed, will retry later" component=dispatcher receiver=all integration=webhook[2] aggrGroup="{}:{event_id=\"abc-1\"}" attempts=1`
	got, err = a.logged([]byte(again), true)
	require.NoError(t, err)
	assert.Equal(t, []receipt{{hook: "receiver-2", id: "abc-1", waits: true}}, got)
	got, err = a.logged([]byte(again), false) // what was in the memory of one that was killed
	require.NoError(t, err)
	assert.Empty(t, got)
}

// refusing takes a notice at its second offer.
type refusing struct {
	notifier
	mu      sync.Mutex
	offered map[string]int
}

func (r *refusing) post(_ context.Context, notices []notice) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range notices {
		if r.offered[n.id]++; r.offered[n.id] == 1 {
			return errors.New("not yet")
		}
	}
	return nil
}

// What is not taken is handed over again until it is, what lasts is repeated, and
// the time is that of the first offer.
func TestHand(t *testing.T) {
	n := &refusing{offered: map[string]int{}}
	before := time.Now()
	sent := hand(t.Context(), n, 5, 1000, "gpu.xid")
	assert.False(t, sent.over())
	<-sent.done
	require.True(t, sent.over())
	times := sent.times()
	require.Len(t, times, 5)
	for id, at := range times {
		assert.Equal(t, 2, n.offered[id])
		assert.WithinRange(t, at, before, time.Now().Add(-repost))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	sent.repeat(ctx, n, 0)
	for id := range times {
		assert.Equal(t, 3, n.offered[id])
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	gone := hand(ctx, n, 5, 1000, "gpu.xid")
	<-gone.done
	assert.False(t, gone.over())
}
