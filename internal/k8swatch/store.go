// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8swatch

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Config of a Store.
type Config[T any] struct {
	// Keep takes of an object what is needed of it; false: the object is not needed.
	Keep func(obj any) (T, bool)
	// Changed is called after what the Store has may have changed, and when it is
	// first listed. It runs in the goroutine of Run, and must not wait. May be nil.
	Changed func()
	// Limit is how many objects are kept, 0 is no limit. Refused gets the number of
	// those that were left out, each time that they were read; required with a Limit.
	Limit   int
	Refused func(n int)
}

// Store keeps T of each object that is needed. Its methods Transformer, Add, Update,
// Delete, Replace and Resync are the reflector's; all others may be called from any
// goroutine, and wait for none.
type Store[T any] struct {
	cfg Config[T]
	age age

	mu     sync.Mutex
	items  map[types.NamespacedName]T
	listed bool
}

var _ cache.ReflectorStore = (*Store[int])(nil)

// New returns an empty Store, which Run fills.
func New[T any](cfg Config[T]) *Store[T] {
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	return &Store[T]{cfg: cfg, items: map[types.NamespacedName]T{}}
}

// Listed reports whether the objects were listed once, or are known not to exist.
func (s *Store[T]) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// Get is what is kept of the object.
func (s *Store[T]) Get(name types.NamespacedName) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.items[name]
	return item, ok
}

// Each calls do with what is kept of each object, in no order. do must not call the
// Store.
func (s *Store[T]) Each(do func(types.NamespacedName, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, item := range s.items {
		do(n, item)
	}
}

// kept is an object after the transform, which the reflector does as objects arrive:
// a list of all pods is never in memory whole.
type kept[T any] struct {
	name   types.NamespacedName
	item   T
	needed bool
}

// Transformer is used by the reflector while it reads a list.
func (s *Store[T]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.transform(obj) }
}

func (s *Store[T]) transform(obj any) (kept[T], error) {
	if k, ok := obj.(kept[T]); ok {
		return k, nil
	}
	n, err := nameOf(obj)
	if err != nil {
		return kept[T]{}, err
	}
	item, needed := s.cfg.Keep(obj)
	return kept[T]{n, item, needed}, nil
}

func nameOf(obj any) (types.NamespacedName, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, nil
}

// Add is called by the reflector, as are the following.
func (s *Store[T]) Add(obj any) error { return s.Update(obj) }

func (s *Store[T]) Update(obj any) error {
	k, err := s.transform(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	_, had := s.items[k.name]
	refused := k.needed && !had && s.full(len(s.items))
	switch {
	case refused:
	case k.needed:
		s.items[k.name] = k.item
	default:
		delete(s.items, k.name)
	}
	s.mu.Unlock()
	if refused {
		s.cfg.Refused(1)
	} else if had || k.needed {
		s.cfg.Changed()
	}
	return nil
}

func (s *Store[T]) full(n int) bool { return s.cfg.Limit > 0 && n >= s.cfg.Limit }

func (s *Store[T]) Delete(obj any) error {
	n, err := nameOf(obj)
	if err != nil {
		return err
	}
	s.mu.Lock()
	_, had := s.items[n]
	delete(s.items, n)
	s.mu.Unlock()
	if had {
		s.cfg.Changed()
	}
	return nil
}

func (s *Store[T]) Replace(list []any, _ string) error {
	items := map[types.NamespacedName]T{}
	refused := 0
	for _, obj := range list {
		k, err := s.transform(obj)
		switch {
		case err != nil:
			return err
		case !k.needed:
		case s.full(len(items)):
			refused++
		default:
			items[k.name] = k.item
		}
	}
	s.age.listed(time.Now())
	s.mu.Lock()
	s.items, s.listed = items, true
	s.mu.Unlock()
	if refused > 0 {
		s.cfg.Refused(refused)
	}
	s.cfg.Changed()
	return nil
}

func (*Store[T]) Resync() error { return nil }

// without notes that there are no objects: none are served, or none may be read.
func (s *Store[T]) without() {
	s.mu.Lock()
	was := s.listed
	s.listed = true
	s.mu.Unlock()
	if !was {
		s.cfg.Changed()
	}
}
