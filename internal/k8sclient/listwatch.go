// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"context"
	"io"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// AnswerTimeout bounds the time until a watch begins, and is enough for any other
// request about a few objects.
const AnswerTimeout = 15 * time.Second

// ListFunc and WatchFunc are what the clients of a kind of object have.
type (
	ListFunc  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	WatchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// List lists within timeout.
func List(ctx context.Context, timeout time.Duration, list ListFunc, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return list(ctx, options)
}

// emptyWatch is what client-go gives in place of an error where the connection of
// a watch closes before it began.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// Watch begins a watch, which ends with ctx and with Stop. The error is
// context.DeadlineExceeded where the watch does not begin within AnswerTimeout, and
// io.ErrUnexpectedEOF where the connection closes before it began. The first Stop
// calls ended, which may be nil: a reflector stops every watch that it leaves.
func Watch(ctx context.Context, begin WatchFunc, options metav1.ListOptions, ended func()) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(AnswerTimeout, cancel)
	w, err := begin(ctx, options)
	switch {
	case !late.Stop():
		if err == nil {
			w.Stop()
		}
		err = context.DeadlineExceeded
	case err == nil && reflect.TypeOf(w) == emptyWatch:
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &endingWatch{Interface: w, end: sync.OnceFunc(func() {
		cancel()
		if ended != nil {
			ended()
		}
	})}, nil
}

// endingWatch lets its request go when it is stopped.
type endingWatch struct {
	watch.Interface
	end func()
}

func (w *endingWatch) Stop() {
	w.Interface.Stop()
	w.end()
}
