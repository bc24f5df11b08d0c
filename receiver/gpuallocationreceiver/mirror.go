// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// mirror follows the objects of one kind that belong to this node, and keeps of
// each what is needed. It is the store of a client-go reflector, whose one
// goroutine calls it. What it kept outlives an API server that is gone.
type mirror[T any] struct {
	keep   func(obj any) T
	update func(map[string]T) // told of each change; the map is the mirror's own
	health *health
	items  map[string]T // by name: the kinds mirrored have no namespace
}

func (m *mirror[T]) Add(obj any) error { return m.put(obj) }

func (m *mirror[T]) Update(obj any) error { return m.put(obj) }

func (m *mirror[T]) put(obj any) error {
	name, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	m.items[name] = m.keep(obj)
	m.update(m.items)
	return nil
}

func (m *mirror[T]) Delete(obj any) error {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return err
	}
	delete(m.items, name)
	m.update(m.items)
	return nil
}

func (m *mirror[T]) Replace(list []any, _ string) error {
	items := make(map[string]T, len(list))
	for _, obj := range list {
		name, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		items[name] = m.keep(obj)
	}
	m.items = items
	m.update(m.items)
	return nil
}

func (*mirror[T]) Resync() error { return nil }

// lister lists and watches what a field selector selects.
type lister struct {
	list     k8sclient.ListFunc
	watch    k8sclient.WatchFunc
	selector string
	requests *requests
	health   *health
}

// run follows until ctx ends. Requests that fail are repeated after 0.8 s to a
// minute. What client-go would log is counted and told by requests.
func (m *mirror[T]) run(ctx context.Context, l *lister, kind runtime.Object) {
	m.items = map[string]T{}
	l.health = m.health
	lw := &noStreaming{&cache.ListWatch{ListWithContextFunc: l.listOnce, WatchFuncWithContext: l.watchOnce}}
	cache.NewReflectorWithOptions(lw, kind, m, cache.ReflectorOptions{Name: string(l.requests.object)}).
		RunWithContext(klog.NewContext(ctx, klog.Logger{}))
}

// noStreaming asks for lists, which every API server answers: the few objects of
// a node need no stream.
type noStreaming struct{ *cache.ListWatch }

func (noStreaming) IsWatchListSemanticsUnSupported() bool { return true }

func (l *lister) listOnce(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = l.selector
	list, err := k8sclient.List(ctx, k8sclient.AnswerTimeout, l.list, options)
	l.requests.ended(ctx, k8sclient.ResultOf(err), err)
	if err == nil {
		l.health.good(time.Now())
	}
	return list, err
}

func (l *lister) watchOnce(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = l.selector
	w, err := k8sclient.Watch(ctx, l.watch, options, func() { l.health.end(time.Now()) })
	l.requests.ended(ctx, k8sclient.ResultOf(err), err)
	if err == nil {
		l.health.begin(time.Now())
	}
	return w, err
}

// health is how old the objects of a mirror may be: they are as the API has them
// while a watch is on, and as they were when it ended.
type health struct {
	mu       sync.Mutex
	watching time.Time // since when a watch is on; zero where none is
	last     time.Time // zero: never listed
}

func (h *health) good(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = now
}

func (h *health) begin(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watching = now
}

// end notes that a watch ended. One that ended at once, as where a proxy answers
// in place of the API, told nothing.
func (h *health) end(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.watching) >= time.Second {
		h.last = now
	}
	h.watching = time.Time{}
}

// asOf is the time at which the objects were last as the API has them; false
// where they never were.
func (h *health) asOf(now time.Time) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watching.IsZero() {
		return now, true
	}
	return h.last, !h.last.IsZero()
}
