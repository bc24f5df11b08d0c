// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func now() time.Time { return epoch }

// sinkBench is a sink behind a socket, and a client that follows no redirects.
type sinkBench struct {
	t      *testing.T
	sink   *Sink
	url    string
	client *http.Client
}

func newSinkBench(t *testing.T) *sinkBench {
	s := NewSink(now)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	client := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(client.CloseIdleConnections)
	return &sinkBench{t: t, sink: s, url: srv.URL, client: client}
}

func (b *sinkBench) do(ctx context.Context, method, path, body string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	require.NoError(b.t, err)
	req.Header.Set("X-Signature", "t=1,v1=ab")
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	return resp, string(out), err
}

func (b *sinkBench) post(path, body string) *http.Response {
	b.t.Helper()
	resp, _, err := b.do(b.t.Context(), http.MethodPost, path, body)
	require.NoError(b.t, err)
	return resp
}

func (b *sinkBench) received(query string) (out []Received) {
	b.t.Helper()
	resp, body, err := b.do(b.t.Context(), http.MethodGet, "/received"+query, "")
	require.NoError(b.t, err)
	require.Equal(b.t, http.StatusOK, resp.StatusCode, body)
	require.NoError(b.t, json.Unmarshal([]byte(body), &out))
	return out
}

func TestSinkRecordsWhatArrives(t *testing.T) {
	b := newSinkBench(t)
	assert.Equal(t, http.StatusOK, b.post("/hook/a?x=1", `{"event":"ü"}`).StatusCode)
	assert.Equal(t, http.StatusOK, b.post("//odd//path", "\xff\x00").StatusCode)
	_, _, err := b.do(t.Context(), http.MethodPut, "/hook/b", strings.Repeat("x", sinkBody+5))
	require.NoError(t, err)

	got := b.received("")
	require.Len(t, got, 3)
	assert.Equal(t, Received{
		Seq: 1, Time: epoch, Method: "POST", Path: "/hook/a", Query: "x=1", Body: `{"event":"ü"}`, Status: 200, Headers: got[0].Headers,
	}, got[0])
	assert.Equal(t, "t=1,v1=ab", got[0].Headers.Get("X-Signature"))
	assert.Equal(t, "//odd//path", got[1].Path)
	assert.Equal(t, []byte("\xff\x00"), got[1].Raw)
	assert.Empty(t, got[1].Body)
	assert.True(t, got[2].Truncated)
	assert.Len(t, got[2].Body, sinkBody)

	assert.Len(t, b.received("?since=2"), 1)
	assert.Len(t, b.received("?path=/hook/b"), 1)
	resp, body, err := b.do(t.Context(), http.MethodGet, "/received?since=x", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode, body)

	resp, _, err = b.do(t.Context(), http.MethodDelete, "/received", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, resp.StatusCode)
	assert.Empty(t, b.received(""))
	b.post("/hook/a", "")
	assert.EqualValues(t, 4, b.received("")[0].Seq, "numbers go on")
}

func TestSinkRemembersTheLastThousand(t *testing.T) {
	s := NewSink(now)
	for i := range sinkSize + 10 {
		r := httptest.NewRequest(http.MethodPost, fmt.Sprintf("/%d", i), nil)
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	got := s.Received()
	require.Len(t, got, sinkSize)
	assert.EqualValues(t, 11, got[0].Seq)

	big := strings.Repeat("x", sinkBody)
	for range sinkBytes/sinkBody + 3 {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(big)))
	}
	assert.LessOrEqual(t, len(s.Received()), sinkBytes/sinkBody)
}

func TestSinkAnswersAsSet(t *testing.T) {
	b := newSinkBench(t)
	answer := func(body string, want int) {
		t.Helper()
		assert.Equal(t, want, b.post("/answer", body).StatusCode, body)
	}
	// Two failures, then a throttle with a header, then the standing answer.
	answer(`{"path":"/hook","status":202,"body":"thanks"}`, http.StatusCreated)
	answer(`{"path":"/hook","status":500,"times":2}`, http.StatusCreated)
	answer(`{"path":"/hook","status":429,"times":1,"headers":{"Retry-After":"7"}}`, http.StatusCreated)
	var statuses []int
	var last *http.Response
	for range 4 {
		last = b.post("/hook", "")
		statuses = append(statuses, last.StatusCode)
		if last.StatusCode == http.StatusTooManyRequests {
			assert.Equal(t, "7", last.Header.Get("Retry-After"))
		}
	}
	assert.Equal(t, []int{500, 500, 429, 202}, statuses)
	assert.Equal(t, http.StatusOK, b.post("/other", "").StatusCode)
	assert.Equal(t, 429, b.received("?path=/hook")[2].Status)

	answer(`{"status":503}`, http.StatusCreated) // every path without a rule of its own
	assert.Equal(t, http.StatusServiceUnavailable, b.post("/other", "").StatusCode)
	assert.Equal(t, http.StatusAccepted, b.post("/hook", "").StatusCode)
	answer(`{"path":"/hook","status":204}`, http.StatusCreated) // in place of the standing one
	assert.Equal(t, http.StatusNoContent, b.post("/hook", "").StatusCode)

	answer(`{"path":"/away","location":"http://127.0.0.1:1/x"}`, http.StatusCreated)
	resp := b.post("/away", "")
	assert.Equal(t, http.StatusFound, resp.StatusCode)
	assert.Equal(t, "http://127.0.0.1:1/x", resp.Header.Get("Location"))

	for _, bad := range []string{`{"status":99}`, `{"status":200,"times":-1}`, `{"delay":"-1s"}`, `{"stat":1}`, `x`} {
		answer(bad, http.StatusBadRequest)
	}
	var rules []Answer
	_, body, err := b.do(t.Context(), http.MethodGet, "/answer", "")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(body), &rules))
	assert.Len(t, rules, 3)
	_, _, err = b.do(t.Context(), http.MethodDelete, "/answer", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, b.post("/hook", "").StatusCode)
	resp, _, err = b.do(t.Context(), http.MethodPatch, "/answer", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

func TestSinkThatHangsOrHangsUp(t *testing.T) {
	b := newSinkBench(t)
	b.post("/answer", `{"path":"/slow","delay":"1h"}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // in which it arrives
	defer cancel()
	_, _, err := b.do(ctx, http.MethodPost, "/slow", "late")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, "late", b.received("")[0].Body, "it arrived all the same")

	b.post("/answer", `{"path":"/gone","close":true}`)
	_, _, err = b.do(t.Context(), http.MethodPost, "/gone", "x")
	require.ErrorIs(t, err, io.EOF)
	assert.Zero(t, b.received("?path=/gone")[0].Status)
}

func TestWaitingAnswersHaveALimit(t *testing.T) {
	s := NewSink(now)
	for range sinkAnswers {
		_, err := s.SetAnswer(Answer{Times: 1})
		require.NoError(t, err)
	}
	_, err := s.SetAnswer(Answer{Times: 1})
	require.ErrorIs(t, err, errTooManyAnswers)
}
