// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package k8swatch follows the objects of one kind in the Kubernetes API and keeps
// what is needed of each.
//
// A client-go reflector lists and watches: it takes bookmarks, repeats requests that
// fail after 0.8 s to a minute, and lists again where the API server has forgotten the
// version that a watch would go on from (410 Gone). What was kept outlives an API
// server that is away, and AsOf states how old it is.
package k8swatch // import "github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// Source is where the objects of one kind come from.
type Source struct {
	Kind  runtime.Object // an empty object
	List  k8sclient.ListFunc
	Watch k8sclient.WatchFunc
	// Selector of fields; "" selects all objects.
	Selector string
	// ListTimeout bounds a list; 0 is k8sclient.AnswerTimeout, which is enough for
	// few objects. Those are asked for with a list, which every API server answers.
	// With a ListTimeout the server may stream them in a watch, if it can.
	ListTimeout time.Duration
	// Optional objects count as listed where the API does not serve them or refuses to list
	// them, so that nothing waits for them. They are known to be none where they are not
	// served alone: Served and Whole make the difference.
	Optional bool
	// Requests reports how requests end. It is used by the goroutine of Run alone.
	Requests *k8sclient.Requests
}

// Run follows from until ctx ends, and returns then. What client-go would log about
// requests that fail is reported by from.Requests. A Store follows one Source.
func (s *Store[T]) Run(ctx context.Context, from *Source) {
	f := follower{Source: from, age: &s.age, without: s.without}
	lists := &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}
	var lw cache.ListerWatcher = lists
	if from.ListTimeout == 0 {
		lw = noStreaming{lists}
	}
	cache.NewReflectorWithOptions(lw, from.Kind, s, cache.ReflectorOptions{Name: from.Requests.Object}).
		RunWithContext(klog.NewContext(ctx, klog.Logger{}))
}

// noStreaming asks for lists alone.
type noStreaming struct{ *cache.ListWatch }

func (noStreaming) IsWatchListSemanticsUnSupported() bool { return true }

// follower makes the requests of a reflector.
type follower struct {
	*Source
	age     *age
	without func(served bool)
}

func (f *follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.FieldSelector = f.Selector
	timeout := f.ListTimeout
	if timeout == 0 {
		timeout = k8sclient.AnswerTimeout
	}
	list, err := k8sclient.List(ctx, timeout, f.List, options)
	f.ended(ctx, err)
	return list, err
}

func (f *follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = f.Selector
	streams := options.SendInitialEvents != nil
	w, err := k8sclient.Watch(ctx, f.Watch, options, func() { f.age.ended(time.Now()) })
	// A server that cannot stream refuses with Invalid, and is asked for a list.
	if !streams || !apierrors.IsInvalid(err) {
		f.ended(ctx, err)
	}
	if err == nil {
		f.age.began(time.Now(), streams)
	}
	return w, err
}

func (f *follower) ended(ctx context.Context, err error) {
	res := k8sclient.ResultOf(err)
	f.Requests.Ended(ctx, res, err)
	if f.Optional && ctx.Err() == nil && (res == k8sclient.ResultNotServed || res == k8sclient.ResultDenied) {
		f.without(res == k8sclient.ResultDenied)
	}
}
