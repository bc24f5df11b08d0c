// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package podnames

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRegistry(t *testing.T) {
	r := &Registry{}
	assert.False(t, r.Wanted())
	r.Want()
	assert.True(t, r.Wanted())
	found := func(uid, id string) string {
		pod, container, ok := r.Container(uid, id)
		if !ok {
			return ""
		}
		return pod.Namespace + "/" + pod.Name + "/" + container
	}
	assert.Empty(t, found("u1", "c1"))
	r.Publish([]Pod{{UID: "u1", Namespace: "team", Name: "llm-0", Containers: map[string]string{"c1": "server"}}, {Name: "without uid"}})
	assert.Equal(t, "team/llm-0/server", found("u1", "c1"))
	assert.Empty(t, found("u1", "c2"))
	assert.Empty(t, found("", ""))
	r.Publish(nil)
	assert.Empty(t, found("u1", "c1"))
}
