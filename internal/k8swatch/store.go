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
	// Changed is called after what the Store has, or Whole, may have changed, and when it is
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
	served bool
	left   leftOut
}

var _ cache.ReflectorStore = (*Store[int])(nil)

// New returns an empty Store, which Run fills.
func New[T any](cfg Config[T]) *Store[T] {
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	return &Store[T]{cfg: cfg, items: map[types.NamespacedName]T{}, served: true}
}

// Listed reports whether the objects were listed once, or are known not to exist.
func (s *Store[T]) Listed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed
}

// Whole reports whether the Store has every object that is needed, as of AsOf: the objects were
// listed, and the limit leaves none of them out. An object that is not in a Store that is not whole
// may be in the API.
func (s *Store[T]) Whole() bool {
	if _, listed := s.AsOf(time.Time{}); !listed {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left.none()
}

// Served reports whether the API serves objects of this kind, as far as it is known.
func (s *Store[T]) Served() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.served
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

// leftOut are the objects that the limit left out, by name, at most as many as are kept.
type leftOut struct {
	names map[types.NamespacedName]struct{}
	more  bool // until the next list
}

func (l *leftOut) add(name types.NamespacedName, limit int) {
	if l.names == nil {
		l.names = map[types.NamespacedName]struct{}{}
	}
	if _, known := l.names[name]; !known && len(l.names) >= limit {
		l.more = true
		return
	}
	l.names[name] = struct{}{}
}

// remove reports whether name was left out.
func (l *leftOut) remove(name types.NamespacedName) bool {
	_, known := l.names[name]
	delete(l.names, name)
	return known
}

func (l *leftOut) none() bool { return len(l.names) == 0 && !l.more }

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
	found := false
	switch {
	case refused:
		s.left.add(k.name, s.cfg.Limit)
	case k.needed:
		s.items[k.name] = k.item
		found = s.left.remove(k.name)
	default:
		delete(s.items, k.name)
		found = s.left.remove(k.name)
	}
	s.mu.Unlock()
	if refused {
		s.cfg.Refused(1)
	}
	if had || k.needed || found {
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
	changed := s.left.remove(n) || had
	s.mu.Unlock()
	if changed {
		s.cfg.Changed()
	}
	return nil
}

func (s *Store[T]) Replace(list []any, _ string) error {
	items := map[types.NamespacedName]T{}
	var left leftOut
	refused := 0
	for _, obj := range list {
		k, err := s.transform(obj)
		switch {
		case err != nil:
			return err
		case !k.needed:
		case s.full(len(items)):
			refused++
			left.add(k.name, s.cfg.Limit)
		default:
			items[k.name] = k.item
		}
	}
	s.mu.Lock()
	s.items, s.left, s.listed, s.served = items, left, true, true
	s.mu.Unlock()
	s.age.listed(time.Now()) // last: objects that are as of a time are there
	if refused > 0 {
		s.cfg.Refused(refused)
	}
	s.cfg.Changed()
	return nil
}

func (*Store[T]) Resync() error { return nil }

// without notes that the objects are not waited for: none are served, or none may be read.
func (s *Store[T]) without(served bool) {
	s.mu.Lock()
	was := s.listed
	s.listed, s.served = true, served
	s.mu.Unlock()
	if !was {
		s.cfg.Changed()
	}
}
