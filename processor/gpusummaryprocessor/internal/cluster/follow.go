// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

const (
	// listTimeout bounds a list, which is of a whole cluster.
	listTimeout = time.Minute
	// logEvery is the time between two log lines about one cause.
	logEvery = 10 * time.Minute
)

// The kinds of objects, as telemetry names them.
const (
	podObjects   = "pods"
	claimObjects = "resource_claims"
)

func remedy(object string, result k8sclient.Result) string {
	switch {
	case result == k8sclient.ResultDenied && object == podObjects:
		return "let the service account list and watch pods: in the whole cluster, or in each of namespaces"
	case result == k8sclient.ResultDenied:
		return "let the service account list and watch resourceclaims in resource.k8s.io, or set dra::enabled to false: until then pods with claims are known by gpu.allocation alone"
	case result == k8sclient.ResultNotServed:
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing where nobody uses DRA; dra::enabled: false ends the question"
	case result == k8sclient.ResultNoAnswer, result == k8sclient.ResultTimeout:
		return "check that the API server is up and can be reached from here; pods are as they were last known"
	default:
		return "look at the API server's log"
	}
}

// lister lists and watches objects of one kind. One goroutine uses it.
type lister struct {
	list    k8sclient.ListFunc
	watch   k8sclient.WatchFunc
	without func() // told when there will be no objects; nil: the objects are needed

	object string
	tel    Telemetry
	logger *zap.Logger
	last   k8sclient.Result
	told   map[string]time.Time
}

// follow fills a store until ctx ends. Requests that fail are repeated after 0.8 s
// to a minute; what client-go would log about them is counted and told by ended.
func (s *Source) follow(ctx context.Context, object string, kind runtime.Object, into cache.ReflectorStore, l lister) {
	l.object, l.tel, l.logger, l.last, l.told = object, s.tel, s.logger, k8sclient.ResultOK, map[string]time.Time{}
	lw := &cache.ListWatch{ListWithContextFunc: l.listOnce, WatchFuncWithContext: l.watchOnce}
	r := cache.NewReflectorWithOptions(lw, kind, into, cache.ReflectorOptions{Name: object})
	s.work.Go(func() { r.RunWithContext(klog.NewContext(ctx, klog.Logger{})) })
}

func (l *lister) listOnce(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := k8sclient.List(ctx, listTimeout, l.list, options)
	l.ended(ctx, err)
	return list, err
}

func (l *lister) watchOnce(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := k8sclient.Watch(ctx, l.watch, options, nil)
	// A server that cannot stream a list says so, and is asked for one.
	if !apierrors.IsInvalid(err) || options.SendInitialEvents == nil {
		l.ended(ctx, err)
	}
	return w, err
}

// ended takes note of how a request ended.
func (l *lister) ended(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // shut down: how the request ended says nothing about the API
	}
	res := k8sclient.ResultOf(err)
	l.tel.Asked(ctx, l.object, string(res))
	if l.without != nil && (res == k8sclient.ResultNotServed || res == k8sclient.ResultDenied) {
		l.without()
	}
	last := l.last
	l.last = res
	switch {
	case res == k8sclient.ResultOK:
		if last != k8sclient.ResultOK && l.due("again") {
			l.logger.Info("The Kubernetes API answers again", zap.String("object", l.object))
		}
	case res == k8sclient.ResultNotServed && last == res:
		// A cluster without DRA stays one.
	case l.due(string(res)):
		l.logger.Warn("Pods that ask for accelerators cannot be read from the Kubernetes API", zap.String("object", l.object),
			zap.String("result", string(res)), zap.String("remedy", remedy(l.object, res)), zap.Error(err))
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
