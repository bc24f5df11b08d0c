// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// name of a namespaced object.
type name struct{ namespace, name string }

func nameOf(obj any) (name, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return name{}, err
	}
	return name{m.GetNamespace(), m.GetName()}, nil
}

// store is what a client-go reflector fills: of each object what is needed of it,
// and nothing at all of most. What it has outlives an API server that is gone.
type store[T any] struct {
	keep    func(obj any) (T, bool)
	limit   int
	refused func(n int) // told of objects that limit left out
	changed func()

	mu    sync.Mutex
	items map[name]T
	sync  bool
}

// kept is an object after the transform, which the reflector does as objects
// arrive: a list of all pods is never in memory whole.
type kept[T any] struct {
	name
	is   T
	with bool
}

func newStore[T any](keep func(any) (T, bool), limit int, changed func()) *store[T] {
	return &store[T]{keep: keep, limit: limit, refused: func(int) {}, changed: changed, items: map[name]T{}}
}

// Transformer is used by the reflector while it reads a list.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.transform(obj) }
}

func (s *store[T]) transform(obj any) (kept[T], error) {
	if k, ok := obj.(kept[T]); ok {
		return k, nil
	}
	n, err := nameOf(obj)
	if err != nil {
		return kept[T]{}, err
	}
	is, with := s.keep(obj)
	return kept[T]{n, is, with}, nil
}

// Add is called by the reflector, as are the following.
func (s *store[T]) Add(obj any) error { return s.Update(obj) }

func (s *store[T]) Update(obj any) error {
	k, err := s.transform(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	_, had := s.items[k.name]
	refused := k.with && !had && len(s.items) >= s.limit
	switch {
	case refused:
	case k.with:
		s.items[k.name] = k.is
	default:
		delete(s.items, k.name)
	}
	s.mu.Unlock()
	if refused {
		s.refused(1)
	} else if had || k.with {
		s.changed()
	}
	return nil
}

func (s *store[T]) Delete(obj any) error {
	n, err := nameOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	_, had := s.items[n]
	delete(s.items, n)
	s.mu.Unlock()
	if had {
		s.changed()
	}
	return nil
}

func (s *store[T]) Replace(list []any, _ string) error {
	items := map[name]T{}
	refused := 0
	for _, obj := range list {
		k, err := s.transform(obj)
		switch {
		case err != nil:
			return err
		case !k.with:
		case len(items) >= s.limit:
			refused++
		default:
			items[k.name] = k.is
		}
	}
	s.mu.Lock()
	s.items, s.sync = items, true
	s.mu.Unlock()
	if refused > 0 {
		s.refused(refused)
	}
	s.changed()
	return nil
}

func (*store[T]) Resync() error { return nil }

// without says that there will be no objects: none are served, or none may be read.
func (s *store[T]) without() {
	s.mu.Lock()
	was := s.sync
	s.sync = true
	s.mu.Unlock()
	if !was {
		s.changed()
	}
}

func (s *store[T]) inSync() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sync
}

func (s *store[T]) each(do func(name, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, item := range s.items {
		do(n, item)
	}
}
