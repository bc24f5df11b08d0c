// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster follows the pods of a Kubernetes cluster that ask for an
// accelerator.
package cluster

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpusummaryprocessor/internal/summary"
)

// buildEvery is the least time between two snapshots: a rollout is a storm of
// changes, and an evaluation needs only the last.
const buildEvery = time.Second

// Config is what to follow.
type Config struct {
	Cluster    string   // k8s.cluster.name of the pods' telemetry
	Namespaces []string // none: all
	Resources  *resourcenames.Matcher
	Unobserved []string // nodes on which no pods are expected: names, or beginnings with "*"
	// Claims is nil where ResourceClaims are not to be read.
	Claims *Claims
	// MaxPods bounds the pods kept of each namespace followed.
	MaxPods int
}

// Claims decides which requests of a ResourceClaim ask for a GPU.
type Claims struct {
	Drivers map[string]bool // of the devices allocated
	Classes map[string]bool // DeviceClasses, until devices are allocated
}

// Telemetry counts what the Source does. It is safe for concurrent use.
type Telemetry interface {
	// Asked counts a request about a kind of object by how it ended.
	Asked(ctx context.Context, object, result string)
	// Refused counts pods that MaxPods left out.
	Refused(ctx context.Context, pods int)
}

// Source follows the Kubernetes API with goroutines of its own. Anyone who reads
// gets what is known and never waits.
type Source struct {
	cfg    Config
	tel    Telemetry
	logger *zap.Logger

	http     *http.Client
	core     corev1client.CoreV1Interface
	resource resourcev1client.ResourceV1Interface

	pods    []*k8swatch.Store[keptPod] // by namespace followed
	claims  []*k8swatch.Store[keptClaim]
	wake    chan struct{} // has room for one: something is to be built
	changed chan struct{} // has room for one: something was built
	built   atomic.Pointer[summary.Pods]

	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New makes the clients. It makes no request.
func New(cfg Config, client *rest.Config, tel Telemetry, logger *zap.Logger) (*Source, error) {
	s := &Source{cfg: cfg, tel: tel, logger: logger, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	var err error
	if s.http, err = rest.HTTPClientFor(client); err != nil {
		return nil, err
	}
	if s.core, err = corev1client.NewForConfigAndClient(client, s.http); err != nil {
		return nil, err
	}
	if s.resource, err = resourcev1client.NewForConfigAndClient(client, s.http); err != nil {
		return nil, err
	}
	return s, nil
}

// Pods are those of the cluster, nil until all of them are known. They are as they
// were when the API no longer answers.
func (s *Source) Pods() *summary.Pods { return s.built.Load() }

// Changed is where there is something to read when Pods are others.
func (s *Source) Changed() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Start begins to follow the API. It does not wait for it.
func (s *Source) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	namespaces := s.cfg.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	keep := keeper{s.cfg.Resources, s.cfg.Claims}
	for _, ns := range namespaces {
		pods := k8swatch.New(k8swatch.Config[keptPod]{
			Keep: keep.pod, Changed: s.signal, Limit: s.cfg.MaxPods,
			Refused: func(n int) { s.tel.Refused(ctx, n) },
		})
		s.pods = append(s.pods, pods)
		api := s.core.Pods(ns)
		run(ctx, s, podObjects, pods, k8swatch.Source{
			Kind:  &corev1.Pod{},
			List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
			Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, o) },
		})
		if s.cfg.Claims == nil {
			continue
		}
		claims := k8swatch.New(k8swatch.Config[keptClaim]{
			Keep: keep.claim, Changed: s.signal, Limit: 4 * s.cfg.MaxPods,
			Refused: func(int) {}, // what is counted is pods
		})
		s.claims = append(s.claims, claims)
		drapi := s.resource.ResourceClaims(ns)
		run(ctx, s, claimObjects, claims, k8swatch.Source{
			Kind:     &resourcev1.ResourceClaim{},
			List:     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return drapi.List(ctx, o) },
			Watch:    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return drapi.Watch(ctx, o) },
			Optional: true, // without claims the pods are known all the same
		})
	}
	s.work.Go(func() { s.build(ctx) })
}

// Shutdown ends what Start began, and waits for it.
func (s *Source) Shutdown() {
	if s == nil {
		return
	}
	if s.cancel != nil {
		s.cancel()
		s.work.Wait()
	}
	s.http.CloseIdleConnections()
}

func (s *Source) signal() { ring(s.wake) }

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// build makes a snapshot when something changed.
func (s *Source) build(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if !s.inSync() {
			continue
		}
		s.built.Store(s.snapshot())
		ring(s.changed)
		select {
		case <-ctx.Done():
			return
		case <-time.After(buildEvery):
		}
	}
}

func (s *Source) inSync() bool {
	for _, st := range s.pods {
		if !st.Listed() {
			return false
		}
	}
	for _, st := range s.claims {
		if !st.Listed() {
			return false
		}
	}
	return true
}

// snapshot joins pods with their claims.
func (s *Source) snapshot() *summary.Pods {
	claims := map[types.NamespacedName]keptClaim{}
	for _, st := range s.claims {
		st.Each(func(n types.NamespacedName, c keptClaim) { claims[n] = c })
	}
	out := &summary.Pods{Cluster: s.cfg.Cluster}
	for _, st := range s.pods {
		st.Each(func(_ types.NamespacedName, p keptPod) {
			switch pod := p.resolve(claims); {
			case pod.Devices == 0:
			case s.cfg.unobserved(pod.Node):
				out.Unobserved++
			default:
				out.List = append(out.List, pod)
			}
		})
	}
	return out
}

// unobserved reports whether no agent can run on the node.
func (c *Config) unobserved(node string) bool {
	return node != "" && slices.ContainsFunc(c.Unobserved, func(pattern string) bool {
		beginning, wild := strings.CutSuffix(pattern, "*")
		return node == pattern || wild && strings.HasPrefix(node, beginning)
	})
}
