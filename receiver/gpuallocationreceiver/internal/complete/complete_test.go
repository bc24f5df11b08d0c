// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestComplete(t *testing.T) {
	agent, train, chat, proxy := Pod{"monitoring", "agent-x"}, Pod{"ml", "train-0"}, Pod{"ml", "chat-0"}, Pod{"kube-system", "kube-proxy"}
	type step struct {
		at, served time.Duration
		pods       map[Pod]bool
		want       bool
	}
	all := map[Pod]bool{agent: false, train: true, chat: true, proxy: false}
	for name, tt := range map[string]struct {
		own   Pod
		steps []step
	}{
		"in a pod: without that pod nothing is known, however long": {agent, []step{
			{0, -time.Hour, all, true},
			{time.Minute, time.Minute, nil, false},
			{2 * time.Minute, time.Minute, map[Pod]bool{proxy: false}, false},
			{time.Hour, time.Minute, nil, false},
			{61 * time.Minute, time.Minute, all, true},
		}},
		"in a pod: at the start too": {agent, []step{{0, 0, nil, false}, {time.Second, 0, all, true}}},
		"in a pod: a drained node is free at once": {agent, []step{
			{0, -time.Hour, all, true}, {time.Minute, -time.Hour, map[Pod]bool{agent: false}, true},
		}},
		"after a restart what an answer misses has to be missing twice": {agent, []step{
			{0, -time.Hour, all, true},
			{time.Minute, time.Minute, map[Pod]bool{agent: false, train: true}, false},
			{2 * time.Minute, time.Minute, all, true},
			{3 * time.Minute, 3 * time.Minute, map[Pod]bool{agent: false, train: true}, false},
			{4 * time.Minute, 3 * time.Minute, map[Pod]bool{agent: false, train: true}, true},
			{5 * time.Minute, 3 * time.Minute, map[Pod]bool{agent: false}, true},
		}},
		"outside: a kubelet that is not new is believed": {Pod{}, []step{
			{0, -time.Hour, all, true}, {time.Minute, -time.Hour, nil, true},
		}},
		"outside: a new one without owners is not, for a while": {Pod{}, []step{
			{0, -time.Hour, all, true},
			{time.Minute, time.Minute, nil, false},
			{2 * time.Minute, time.Minute, map[Pod]bool{proxy: false}, false},
			{5*time.Minute + 59*time.Second, time.Minute, nil, false},
			{6 * time.Minute, time.Minute, nil, false}, // missing for the first time
			{7 * time.Minute, time.Minute, nil, true},
		}},
		"outside: one that has named its pods is": {Pod{}, []step{
			{0, 0, all, true}, {time.Second, 0, nil, true},
		}},
		"outside: another owner says that it knows its pods": {Pod{}, []step{
			{0, -time.Hour, map[Pod]bool{train: true}, true},
			{time.Minute, time.Minute, map[Pod]bool{chat: true}, false},
			{2 * time.Minute, time.Minute, map[Pod]bool{chat: true}, true},
		}},
		"outside: at the start any pod does, and a kubelet that is not new": {Pod{}, []step{
			{0, 0, nil, false}, {time.Second, 0, map[Pod]bool{proxy: false}, true},
		}},
		"outside: an idle node long after its start": {Pod{}, []step{{0, -time.Hour, nil, true}}},
		"outside: the clock was set back": {Pod{}, []step{
			{0, 24 * time.Hour, nil, false}, {4 * time.Minute, 24 * time.Hour, nil, false}, {5 * time.Minute, 24 * time.Hour, nil, true},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			j := Judge{Own: tt.own}
			for i, s := range tt.steps {
				assert.Equal(t, s.want, j.Complete(Answer{At: start.Add(s.at), Served: start.Add(s.served), Pods: s.pods}), "step %d", i)
			}
		})
	}
	t.Run("outside: a socket of which nothing is known", func(t *testing.T) {
		assert.True(t, new(Judge).Complete(Answer{At: time.Now()}))
	})
}
