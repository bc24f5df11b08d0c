// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/holders"
)

// shared is the knowledge of each gpu_pod that runs. The instances of one
// component ID in several pipelines have the same *Config, and share what they
// know: logs and traces are attributed by what metrics told. It is taken at
// Start and let go at Shutdown, so that a pipeline that never starts holds none.
var shared = sharedKnowledge{users: map[*Config]*knowledgeUsers{}}

type sharedKnowledge struct {
	mu    sync.Mutex
	users map[*Config]*knowledgeUsers
}

type knowledgeUsers struct {
	know  *holders.Knowledge
	count int
}

func (s *sharedKnowledge) take(cfg *Config) *holders.Knowledge {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[cfg]
	if u == nil {
		u = &knowledgeUsers{know: holders.New(cfg.MaxAge, cfg.MaxDevices)}
		s.users[cfg] = u
	}
	u.count++
	return u.know
}

func (s *sharedKnowledge) release(cfg *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[cfg]
	if u.count--; u.count == 0 {
		delete(s.users, cfg)
	}
}
