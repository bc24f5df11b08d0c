// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// honest is a run in which all went well: ops got e1 at the second attempt, e2
// was cut off by a kill and then answered, e3 was refused for good; pager wants
// e1 alone and dropped it; e4 was never acknowledged and never seen.
func honest() Facts {
	return Facts{
		Events: []Event{
			{ID: "e1", Acknowledged: true, Posts: 1},
			{ID: "e2", Acknowledged: true, Posts: 1},
			{ID: "e3", Acknowledged: true, Posts: 1},
			{ID: "e4", Posts: 1},
		},
		Wants: map[string]func(Event) bool{
			"ops":   func(Event) bool { return true },
			"pager": func(e Event) bool { return e.ID == "e1" },
		},
		Connections: map[string]int{"ops": 6},
		Requests: []Request{
			{Receiver: "ops", WebhookID: "e1", Arrived: at(1.1), Status: 503},
			{Receiver: "ops", WebhookID: "e1", Arrived: at(3.1), Status: 200},
			{Receiver: "ops", WebhookID: "e2", Arrived: at(4.25)},
			{Receiver: "ops", WebhookID: "e2", Arrived: at(9.1), Status: 204},
			{Receiver: "ops", WebhookID: "e3", Arrived: at(2.1), Status: 404},
		},
		Records: []Record{
			{ID: "r1", EventIDs: []string{"e1"}, Receiver: "ops", Time: at(1), Attempt: 1, Outcome: "failed", Status: 503, ErrorType: "http_5xx", NextAttempt: at(3)},
			{ID: "r2", EventIDs: []string{"e1"}, Receiver: "ops", Time: at(3), Attempt: 2, Outcome: "succeeded", Status: 200},
			{ID: "r3", EventIDs: []string{"e2"}, Receiver: "ops", Time: at(4), Attempt: 1, Outcome: "failed", ErrorType: "interrupted", NextAttempt: at(7)},
			{ID: "r4", EventIDs: []string{"e2"}, Receiver: "ops", Time: at(7), Attempt: 2, Outcome: "failed", ErrorType: "connect", NextAttempt: at(9)},
			{ID: "r5", EventIDs: []string{"e2"}, Receiver: "ops", Time: at(9), Attempt: 3, Outcome: "succeeded", Status: 204},
			{ID: "r6", EventIDs: []string{"e3"}, Receiver: "ops", Time: at(2), Attempt: 1, Outcome: "failed", Status: 404, ErrorType: "http_4xx"},
			{ID: "r7", EventIDs: []string{"e1"}, Receiver: "pager", Time: at(1), Outcome: "dropped", ErrorType: "queue_full"},
		},
		LastKill: at(5),
	}
}

func TestJudgeHonest(t *testing.T) {
	v := Judge(honest())
	assert.Empty(t, v.Findings())
	assert.Equal(t, "delivered 2, given up 2, lost 0, unaudited 0", v.Summary())
}

// Each way to break the promise is found, and as what it is.
func TestJudgeFinds(t *testing.T) {
	without := func(id string) func(*Facts) {
		return func(f *Facts) {
			f.Records = slices.DeleteFunc(f.Records, func(r Record) bool { return r.ID == id })
		}
	}
	again := func(id string, change func(*Record)) func(*Facts) {
		return func(f *Facts) {
			i := slices.IndexFunc(f.Records, func(r Record) bool { return r.ID == id })
			r := f.Records[i]
			change(&r)
			f.Records = append(f.Records, r)
		}
	}
	for _, tc := range []struct {
		name  string
		spoil func(*Facts)
		want  Verdict // the numbers of findings, not their words
		line  string
	}{
		{
			name:  "an event that left no trace",
			spoil: func(f *Facts) { f.Events = append(f.Events, Event{ID: "e5", Acknowledged: true, Posts: 1}) },
			want:  Verdict{Lost: make([]string, 1)},
			line:  "lost: e5 to ops: no request and no record",
		},
		{
			name: "an event that was tried and then forgotten",
			spoil: func(f *Facts) {
				f.Requests = slices.Delete(f.Requests, 1, 2)
				f.Connections["ops"]--
				without("r2")(f)
			},
			want: Verdict{Lost: make([]string, 1), Open: make([]string, 1)},
			line: "lost: e1 to ops: 1 requests, none answered 2xx; 1 records, none gives it up",
		},
		{
			name:  "a drop that nobody wrote down",
			spoil: without("r7"),
			want:  Verdict{Lost: make([]string, 1)},
			line:  "lost: e1 to pager: no request and no record",
		},
		{
			name:  "an answered request without a record",
			spoil: without("r2"),
			want:  Verdict{Unaudited: make([]string, 1), Open: make([]string, 1)},
			line:  "unaudited: e1 to ops: request at 12:00:03.100, answered 200, has no record",
		},
		{
			name:  "an attempt cut off by the kill without a record",
			spoil: without("r3"),
			want:  Verdict{Unaudited: make([]string, 1)},
			line:  "unaudited: e2 to ops: request at 12:00:04.250, answered 0, has no record",
		},
		{
			name:  "a connection that was reset before it told its event",
			spoil: func(f *Facts) { f.Connections["ops"]++ },
			want:  Verdict{Unaudited: make([]string, 1)},
			line:  "unaudited: ops accepted 7 connections, but the records contain 6 attempts",
		},
		{
			name:  "a record written twice",
			spoil: again("r5", func(*Record) {}),
			want:  Verdict{Doubled: make([]string, 1)},
			line:  "doubled: record r5 is duplicated",
		},
		{
			name:  "an attempt told of twice under two ids",
			spoil: again("r3", func(r *Record) { r.ID = "r8" }),
			want:  Verdict{Doubled: make([]string, 1), Open: make([]string, 1)},
			line:  "doubled: e2 to ops: 2 records of attempt 1, but it was sent 1 times",
		},
		{
			name:  "a success that the receiver knows nothing of",
			spoil: func(f *Facts) { f.Requests[1].Status = 500 },
			want:  Verdict{Lost: make([]string, 1), Unaudited: make([]string, 1), Invented: make([]string, 1)},
			line:  "invented: record r2: e1 to ops was answered 200 according to the record, but no such request is left",
		},
		{
			name:  "a record that begins after its request",
			spoil: func(f *Facts) { f.Records[1].Time = at(3.2) },
			want:  Verdict{Unaudited: make([]string, 1), Invented: make([]string, 1)},
			line:  "unaudited: e1 to ops: request at 12:00:03.100, answered 200, has no record",
		},
		{
			name:  "a record of other bytes than were sent",
			spoil: func(f *Facts) { f.Requests[1].Body, f.Records[1].Body = "aa", "bb" },
			want:  Verdict{Unaudited: make([]string, 1), Invented: make([]string, 1)},
			line:  "unaudited: e1 to ops: request at 12:00:03.100, answered 200, has no record",
		},
		{
			name: "a group of which there is no record",
			spoil: func(f *Facts) {
				f.Connections["ops"]++
				f.Requests = append(f.Requests, Request{Receiver: "ops", WebhookID: "grp_1", Body: "cc", Arrived: at(8), Status: 200})
			},
			want: Verdict{Unaudited: make([]string, 1), Unwanted: make([]string, 1)},
			line: "unwanted: grp_1 to ops: 1 requests, 0 records",
		},
		{
			name:  "an interruption that nobody caused",
			spoil: func(f *Facts) { f.LastKill = at(3.5) },
			want:  Verdict{Invented: make([]string, 1)},
			line:  "invented: record r3 has outcome interrupted, but nothing was killed after 2026-03-04 12:00:04 +0000 UTC",
		},
		{
			name:  "an announced attempt that never came",
			spoil: func(f *Facts) { f.Records[4].NextAttempt = at(11) },
			want:  Verdict{Open: make([]string, 1)},
			line:  "open: e2 to ops: 1 announced attempts are missing",
		},
		{
			name: "a receiver that was sent what it filters out",
			spoil: func(f *Facts) {
				f.Records = append(f.Records, Record{ID: "r8", EventIDs: []string{"e2"}, Receiver: "pager", Time: at(1), Outcome: "dropped"})
			},
			want: Verdict{Unwanted: make([]string, 1)},
			line: "unwanted: e2 to pager: 0 requests, 1 records",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := honest()
			tc.spoil(&f)
			v := Judge(f)
			assert.Contains(t, v.Findings(), tc.line)
			assert.Len(t, v.Lost, len(tc.want.Lost), "lost: %q", v.Lost)
			assert.Len(t, v.Unaudited, len(tc.want.Unaudited), "unaudited: %q", v.Unaudited)
			assert.Len(t, v.Doubled, len(tc.want.Doubled), "doubled: %q", v.Doubled)
			assert.Len(t, v.Invented, len(tc.want.Invented), "invented: %q", v.Invented)
			assert.Len(t, v.Open, len(tc.want.Open), "open: %q", v.Open)
			assert.Len(t, v.Unwanted, len(tc.want.Unwanted), "unwanted: %q", v.Unwanted)
		})
	}
}

// What is no breach is not called one.
func TestJudgeAccepts(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"an event that was posted twice and delivered twice": func(f *Facts) {
			f.Events[0].Posts = 2
			f.Connections["ops"]++
			f.Requests = append(f.Requests, Request{Receiver: "ops", WebhookID: "e1", Arrived: at(8.1), Status: 200})
			f.Records = append(f.Records, Record{ID: "r8", EventIDs: []string{"e1"}, Receiver: "ops", Time: at(8), Attempt: 1, Outcome: "succeeded", Status: 200})
		},
		"events that travelled as a group": func(f *Facts) {
			f.Events[1].Posts = 2
			f.Events[2].Posts = 2
			f.Connections["ops"]++
			f.Requests = append(f.Requests, Request{Receiver: "ops", WebhookID: "grp_1", Body: "cc", Arrived: at(8.1), Status: 200})
			f.Records = append(f.Records, Record{ID: "r8", WebhookID: "grp_1", EventIDs: []string{"e2", "e3"}, Receiver: "ops", Body: "cc", Time: at(8), Attempt: 1, Outcome: "succeeded", Status: 200})
		},
		"a group of which a kill let half a body through": func(f *Facts) {
			f.Events[1].Posts = 2
			f.Events[2].Posts = 2
			f.Connections["ops"] += 2
			f.Requests = append(f.Requests,
				Request{Receiver: "ops", WebhookID: "grp_1", Arrived: at(4.1)},
				Request{Receiver: "ops", WebhookID: "grp_1", Body: "cc", Arrived: at(9.1), Status: 200})
			f.Records = append(f.Records,
				Record{ID: "r8", WebhookID: "grp_1", EventIDs: []string{"e2", "e3"}, Receiver: "ops", Body: "cc", Time: at(4), Attempt: 1, Outcome: "failed", ErrorType: "interrupted", NextAttempt: at(9)},
				Record{ID: "r9", WebhookID: "grp_1", EventIDs: []string{"e2", "e3"}, Receiver: "ops", Body: "cc", Time: at(9), Attempt: 2, Outcome: "succeeded", Status: 200})
		},
		"an event that came through although nobody heard the acknowledgement": func(f *Facts) {
			f.Connections["ops"]++
			f.Requests = append(f.Requests, Request{Receiver: "ops", WebhookID: "e4", Arrived: at(8.1), Status: 200})
			f.Records = append(f.Records, Record{ID: "r8", EventIDs: []string{"e4"}, Receiver: "ops", Time: at(8), Attempt: 1, Outcome: "succeeded", Status: 200})
		},
		"a retry that was dropped while it waited": func(f *Facts) {
			f.Requests = slices.Delete(f.Requests, 1, 2)
			f.Records[1] = Record{ID: "r2", EventIDs: []string{"e1"}, Receiver: "ops", Time: at(3), Outcome: "dropped", ErrorType: "gone"}
			f.Connections["ops"]--
		},
		"an answer that the collector no longer waited for": func(f *Facts) {
			f.Records[0].Status, f.Records[0].ErrorType = 0, "timeout"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := honest()
			change(&f)
			assert.Empty(t, Judge(f).Findings())
		})
	}
}
