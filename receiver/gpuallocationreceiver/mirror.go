// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"io"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// answerTimeout bounds a list, a get, and the time until a watch begins.
const answerTimeout = 15 * time.Second

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
	list     func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch    func(context.Context, metav1.ListOptions) (watch.Interface, error)
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

// emptyWatch is what client-go gives in place of an error where the connection of
// a watch closes before it began.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// noStreaming asks for lists, which every API server answers: the few objects of
// a node need no stream.
type noStreaming struct{ *cache.ListWatch }

func (noStreaming) IsWatchListSemanticsUnSupported() bool { return true }

func (l *lister) listOnce(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	options.FieldSelector = l.selector
	list, err := l.list(ctx, options)
	l.requests.ended(ctx, resultOf(err), err)
	if err == nil {
		l.health.good(time.Now())
	}
	return list, err
}

// watchOnce ends with ctx, with Stop, and where the watch does not begin in time.
func (l *lister) watchOnce(parent context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(parent)
	late := time.AfterFunc(answerTimeout, cancel)
	options.FieldSelector = l.selector
	w, err := l.watch(ctx, options)
	switch {
	case !late.Stop():
		if err == nil {
			w.Stop()
		}
		err = context.DeadlineExceeded
	case err == nil && reflect.TypeOf(w) == emptyWatch:
		err = io.ErrUnexpectedEOF
	}
	l.requests.ended(parent, resultOf(err), err)
	if err != nil {
		cancel()
		return nil, err
	}
	l.health.begin(time.Now())
	return &healthyWatch{Interface: w, end: sync.OnceFunc(func() {
		cancel()
		l.health.end(time.Now())
	})}, nil
}

// healthyWatch says when it ends: a reflector stops every watch that it leaves.
type healthyWatch struct {
	watch.Interface
	end func()
}

func (w *healthyWatch) Stop() {
	w.Interface.Stop()
	w.end()
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
