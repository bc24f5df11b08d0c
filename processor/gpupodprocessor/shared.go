// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"sync"

	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/ownership"
)

// shared is the memory of gpu.allocation of each gpu_pod that runs. The instances of
// one component ID in several pipelines have the same *Config, and share it: logs and
// traces are attributed by what arrives with metrics. It is taken at Start and released
// at Shutdown, so that a pipeline that never starts has none.
var shared = sharedMemories{users: map[*Config]*memoryUsers{}}

type sharedMemories struct {
	mu    sync.Mutex
	users map[*Config]*memoryUsers
}

type memoryUsers struct {
	memory *ownership.Memory
	count  int
}

func (s *sharedMemories) take(cfg *Config) *ownership.Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[cfg]
	if u == nil {
		u = &memoryUsers{memory: newMemory(cfg)}
		s.users[cfg] = u
	}
	u.count++
	return u.memory
}

func (s *sharedMemories) release(cfg *Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[cfg]
	if u.count--; u.count == 0 {
		delete(s.users, cfg)
	}
}

func newMemory(cfg *Config) *ownership.Memory {
	return ownership.New(ownership.Config{
		MaxAge: cfg.MaxAge, MaxDevices: cfg.MaxDevices, PodDevices: cfg.PodDevices, SlurmIndex: ownership.IndexOrder(cfg.SlurmIndexOrder),
	})
}
