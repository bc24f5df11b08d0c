// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"context"
	"net/http"
	"slices"
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
)

// buildEvery is the least time between two snapshots: a rollout is a storm of
// changes, and an evaluation needs only the last.
const buildEvery = time.Second

// follower follows the Kubernetes API for the members of one watch.
type follower struct {
	cfg       Config
	resources *resourcenames.Matcher
	logger    *zap.Logger // of the member that joined first: each cause is logged once

	mu      sync.Mutex
	members []*Member // that joined and did not leave
	started int       // of them

	// The following are of the time between the first start and the last shutdown.
	http   *http.Client
	pods   []*k8swatch.Store[keptPod] // by namespace followed
	claims []*k8swatch.Store[keptClaim]
	wake   chan struct{} // has room for one: something is to be built
	built  atomic.Pointer[Snapshot]
	others bool
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// each calls do with every member. do must not call the watch.
func (f *follower) each(do func(*Member)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		do(m)
	}
}

// needs are those of all members.
func (f *follower) needs() Need {
	var all Need
	for _, m := range f.members {
		all.MaxPods = max(all.MaxPods, m.set.Need.MaxPods)
		all.Scheduling = all.Scheduling || m.set.Need.Scheduling
		all.Others = all.Others || m.set.Need.Others
		for _, label := range m.set.Need.QueueLabels {
			if !slices.Contains(all.QueueLabels, label) {
				all.QueueLabels = append(all.QueueLabels, label)
			}
		}
	}
	return all
}

// open begins to follow the API. It makes no request that it waits for.
func (f *follower) open(client *rest.Config) error {
	var err error
	if f.http, err = rest.HTTPClientFor(client); err != nil {
		return err
	}
	core, err := corev1client.NewForConfigAndClient(client, f.http)
	if err != nil {
		return err
	}
	dra, err := resourcev1client.NewForConfigAndClient(client, f.http)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.wake, f.pods, f.claims = cancel, make(chan struct{}, 1), nil, nil
	f.built.Store(nil)
	namespaces := f.cfg.Keys.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	need := f.needs()
	f.others = need.Others
	keep := newKeeper(&f.cfg.Keys, f.resources, &need)
	for _, ns := range namespaces {
		f.followPods(ctx, keep, need.MaxPods, core.Pods(ns))
		if f.cfg.Keys.DRA.Enabled {
			f.followClaims(ctx, keep, need.MaxPods, dra.ResourceClaims(ns))
		}
	}
	f.work.Go(func() { f.build(ctx) })
	return nil
}

func (f *follower) followPods(ctx context.Context, keep *keeper, limit int, api corev1client.PodInterface) {
	pods := k8swatch.New(k8swatch.Config[keptPod]{
		Keep: keep.pod, Changed: f.signal, Limit: limit,
		Refused: func(n int) { f.each(func(m *Member) { m.set.Telemetry.Refused(ctx, n) }) },
	})
	f.pods = append(f.pods, pods)
	run(ctx, f, podObjects, pods, k8swatch.Source{
		Kind:  &corev1.Pod{},
		List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, o) },
	})
}

func (f *follower) followClaims(ctx context.Context, keep *keeper, limit int, api resourcev1client.ResourceClaimInterface) {
	claims := k8swatch.New(k8swatch.Config[keptClaim]{
		Keep: keep.claim, Changed: f.signal, Limit: 4 * limit,
		Refused: func(n int) { f.each(func(m *Member) { m.set.Telemetry.Refused(ctx, n) }) },
	})
	f.claims = append(f.claims, claims)
	run(ctx, f, claimObjects, claims, k8swatch.Source{
		Kind:     &resourcev1.ResourceClaim{},
		List:     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return api.List(ctx, o) },
		Watch:    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return api.Watch(ctx, o) },
		Optional: true, // without claims the pods are known all the same
	})
}

// close ends what open began, and waits for it.
func (f *follower) close() {
	f.cancel()
	f.work.Wait()
	f.http.CloseIdleConnections()
}

func (f *follower) signal() { ring(f.wake) }

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// build makes a snapshot when something changed.
func (f *follower) build(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
		if !f.listed() {
			continue
		}
		f.built.Store(f.snapshot())
		f.each(func(m *Member) { ring(m.changed) })
		select {
		case <-ctx.Done():
			return
		case <-time.After(buildEvery):
		}
	}
}

func (f *follower) listed() bool {
	for _, st := range f.pods {
		if !st.Listed() {
			return false
		}
	}
	for _, st := range f.claims {
		if !st.Listed() {
			return false
		}
	}
	return true
}

// snapshot joins pods with their claims.
func (f *follower) snapshot() *Snapshot {
	out := newSnapshot(f.others)
	out.Whole, out.Claims = whole(f.pods), whole(f.claims)
	claims := map[types.NamespacedName]keptClaim{}
	for _, st := range f.claims {
		st.Each(func(n types.NamespacedName, c keptClaim) { claims[n] = c })
	}
	for _, st := range f.pods {
		st.Each(func(_ types.NamespacedName, p keptPod) { out.add(p, claims) })
	}
	return out
}

// whole reports whether the stores have everything that is needed. There is none where nothing is
// followed.
func whole[T any](stores []*k8swatch.Store[T]) bool {
	for _, st := range stores {
		if !st.Whole() {
			return false
		}
	}
	return len(stores) > 0
}

// asOf is the time at which all stores were last as the API has them.
func asOf[T any](stores []*k8swatch.Store[T], now time.Time) (oldest time.Time, ok bool) {
	oldest = now
	for _, st := range stores {
		at, known := st.AsOf(now)
		if !known {
			return time.Time{}, false
		}
		if at.Before(oldest) {
			oldest = at
		}
	}
	return oldest, len(stores) > 0
}
