// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// listTimeout bounds a list, answerTimeout the time until a watch begins.
	listTimeout   = time.Minute
	answerTimeout = 15 * time.Second
	// logEvery is the time between two log lines about one cause.
	logEvery = 10 * time.Minute
)

// The kinds of objects, as telemetry names them.
const (
	podObjects   = "pods"
	claimObjects = "resource_claims"
)

// How a request ended, as telemetry names it.
const (
	resultOK        = "ok"
	resultDenied    = "denied"
	resultNotServed = "not_served"
	resultNoAnswer  = "no_answer"
	resultTimeout   = "timeout"
	resultFailed    = "failed"
)

func remedy(object, result string) string {
	switch {
	case result == resultDenied && object == podObjects:
		return "let the service account list and watch pods: in the whole cluster, or in each of namespaces"
	case result == resultDenied:
		return "let the service account list and watch resourceclaims in resource.k8s.io, or set dra::enabled to false: until then pods with claims are known by gpu.allocation alone"
	case result == resultNotServed:
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing where nobody uses DRA; dra::enabled: false ends the question"
	case result == resultNoAnswer, result == resultTimeout:
		return "check that the API server is up and can be reached from here; pods are as they were last known"
	default:
		return "look at the API server's log"
	}
}

func resultOf(err error) string {
	var netErr net.Error
	switch {
	case err == nil:
		return resultOK
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return resultDenied
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return resultNotServed
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return resultTimeout
	case errors.As(err, &netErr):
		if netErr.Timeout() {
			return resultTimeout
		}
		return resultNoAnswer
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return resultNoAnswer
	default:
		return resultFailed
	}
}

// lister lists and watches objects of one kind. One goroutine uses it.
type lister struct {
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
	without func() // told when there will be no objects; nil: the objects are needed

	object string
	tel    Telemetry
	logger *zap.Logger
	last   string
	told   map[string]time.Time
}

// follow fills a store until ctx ends. Requests that fail are repeated after 0.8 s
// to a minute; what client-go would log about them is counted and told by ended.
func (s *Source) follow(ctx context.Context, object string, kind runtime.Object, into cache.ReflectorStore, l lister) {
	l.object, l.tel, l.logger, l.last, l.told = object, s.tel, s.logger, resultOK, map[string]time.Time{}
	lw := &cache.ListWatch{ListWithContextFunc: l.listOnce, WatchFuncWithContext: l.watchOnce}
	r := cache.NewReflectorWithOptions(lw, kind, into, cache.ReflectorOptions{Name: object})
	s.work.Go(func() { r.RunWithContext(klog.NewContext(ctx, klog.Logger{})) })
}

func (l *lister) listOnce(parent context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(parent, listTimeout)
	defer cancel()
	list, err := l.list(ctx, options)
	l.ended(parent, err)
	return list, err
}

// emptyWatch is what client-go gives in place of an error where the connection of
// a watch closes before it began.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

// watchOnce ends with parent, with Stop, and where the watch does not begin in time.
func (l *lister) watchOnce(parent context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(parent)
	late := time.AfterFunc(answerTimeout, cancel)
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
	// A server that cannot stream a list says so, and is asked for one.
	if !apierrors.IsInvalid(err) || options.SendInitialEvents == nil {
		l.ended(parent, err)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &endingWatch{w, cancel}, nil
}

// endingWatch lets its request go when the reflector leaves it.
type endingWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

func (w *endingWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}

// ended takes note of how a request ended.
func (l *lister) ended(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // shut down: how the request ended says nothing about the API
	}
	res := resultOf(err)
	l.tel.Asked(ctx, l.object, res)
	if l.without != nil && (res == resultNotServed || res == resultDenied) {
		l.without()
	}
	last := l.last
	l.last = res
	switch {
	case res == resultOK:
		if last != resultOK && l.due("again") {
			l.logger.Info("The Kubernetes API answers again", zap.String("object", l.object))
		}
	case res == resultNotServed && last == res:
		// A cluster without DRA stays one.
	case l.due(res):
		l.logger.Warn("Pods that ask for accelerators cannot be read from the Kubernetes API", zap.String("object", l.object),
			zap.String("result", res), zap.String("remedy", remedy(l.object, res)), zap.Error(err))
	}
}

func (l *lister) due(cause string) bool {
	now := time.Now()
	last, ok := l.told[cause]
	if ok && now.Sub(last) < logEvery {
		return false
	}
	l.told[cause] = now
	return true
}
