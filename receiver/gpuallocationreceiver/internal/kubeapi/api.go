// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubeapi follows what the Kubernetes API has about one node: its object, its
// ResourceSlices and the ResourceClaims of its pods.
package kubeapi

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	resourcev1client "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/podnames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/dra"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// maxAPIAge is for how long the last state of the API is taken as the current one,
// when it no longer answers.
const maxAPIAge = 5 * time.Minute

// Config is what to follow.
type Config struct {
	Node       string
	Read       snapshot.NodeReader
	DRA        bool            // ResourceSlices and ResourceClaims too
	Drivers    map[string]bool // of DRA, those of GPUs
	MaxDevices int             // of ResourceSlices
	Sharing    *sharing.Reader // nil: pods are not read
}

// Telemetry reports how requests end.
type Telemetry struct {
	Count  func(ctx context.Context, object string, res k8sclient.Result)
	Logger *zap.Logger
}

// API is what the Kubernetes API has about one node. Its goroutines follow the API on
// their own; reading gets what is known, and never waits. A nil API knows nothing.
type API struct {
	cfg     Config
	tel     Telemetry
	changed chan struct{} // has room for one: something is known that was not
	emit    func()        // called when the node is another

	core     corev1client.CoreV1Interface
	resource resourcev1client.ResourceV1Interface // nil without DRA
	http     *http.Client

	nodes     *k8swatch.Store[snapshot.Node]
	slices    *k8swatch.Store[dra.Slice]
	node      atomic.Pointer[snapshot.Node] // nil: not known
	pools     atomic.Pointer[dra.Pools]     // nil: never listed
	claims    *claims                       // nil without DRA
	shared    *shared                       // nil where no scheduler shares boards
	created   time.Time
	notServed atomic.Bool // resource.k8s.io/v1, by its last answer
}

// New makes the clients. emit is called when the node is another; it must not wait. It makes no request.
func New(cfg Config, client *rest.Config, tel Telemetry, emit func()) (*API, error) {
	k := &API{cfg: cfg, tel: tel, emit: emit, changed: make(chan struct{}, 1), created: time.Now()}
	k.nodes = k8swatch.New(k8swatch.Config[snapshot.Node]{Keep: cfg.Read.Keep, Changed: k.nodeChanged})
	k.slices = k8swatch.New(k8swatch.Config[dra.Slice]{Keep: dra.Keeper{Drivers: cfg.Drivers}.Keep, Changed: k.slicesChanged})
	var err error
	if k.http, err = rest.HTTPClientFor(client); err != nil {
		return nil, err
	}
	if k.core, err = corev1client.NewForConfigAndClient(client, k.http); err != nil {
		return nil, err
	}
	if k.shared, err = newShared(cfg, client, k.http, k.core, tel, k.signal); err != nil {
		return nil, err
	}
	if cfg.DRA {
		resources, err := resourcev1client.NewForConfigAndClient(client, k.http)
		if err != nil {
			return nil, err
		}
		k.resource = resources
		k.claims = newClaims(func(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
			return resources.ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		}, tel, k.signal)
	}
	return k, nil
}

// Start begins to follow the API, until ctx ends.
func (k *API) Start(ctx context.Context, work *sync.WaitGroup) {
	work.Go(func() {
		k.followNode(ctx)
	})
	k.shared.start(ctx, work)
	if podnames.Process.Wanted() {
		work.Go(func() {
			k.followPods(ctx, podnames.Process)
		})
	}
	if k.resource == nil {
		return
	}
	work.Go(func() {
		k.followSlices(ctx)
	})
	work.Go(func() {
		k.claims.run(ctx)
	})
}

func (k *API) followNode(ctx context.Context) {
	nodes := k.core.Nodes()
	k.nodes.Run(ctx, &k8swatch.Source{
		Kind: &corev1.Node{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
		Selector: fields.OneTermEqualSelector("metadata.name", k.cfg.Node).String(),
		Requests: k.tel.requests(nodeObject),
	})
}

func (k *API) nodeChanged() {
	var is *snapshot.Node
	if s, ok := k.nodes.Get(types.NamespacedName{Name: k.cfg.Node}); ok {
		is = &s
	}
	was := k.node.Swap(is)
	if (was == nil) != (is == nil) || was != nil && !was.Equal(is) {
		k.emit()
	}
	if was.Sharing() != is.Sharing() || k.shared != nil && !sameBoards(was, is) {
		k.signal()
	}
}

func sameBoards(a, b *snapshot.Node) bool {
	return a == b || a != nil && b != nil && a.SameBoards(b)
}

func (k *API) followSlices(ctx context.Context) {
	all := k.resource.ResourceSlices()
	k.slices.Run(ctx, &k8swatch.Source{
		Kind: &resourcev1.ResourceSlice{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := all.List(ctx, o)
			k.notServed.Store(k8sclient.ResultOf(err) == k8sclient.ResultNotServed)
			return list, err
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
		Selector: fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, k.cfg.Node).String(),
		Requests: k.tel.requests(resourceSlices),
	})
}

func (k *API) slicesChanged() {
	kept := map[string]dra.Slice{}
	k.slices.Each(func(n types.NamespacedName, s dra.Slice) { kept[n.Name] = s })
	is := dra.NewPools(kept, k.cfg.MaxDevices)
	if was := k.pools.Load(); was == nil || !reflect.DeepEqual(was, is) {
		k.pools.Store(is)
		k.signal()
	}
}

// signal requests a query of the kubelet now: its answer may mean more than a
// moment ago.
func (k *API) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Changes is where signals arrive; nil without API, on which nothing ever does.
func (k *API) Changes() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.changed
}

// Want sets the claims that the kubelet lists.
func (k *API) Want(wanted map[dra.ClaimID]dra.Device) {
	if k != nil && k.claims != nil {
		k.claims.want(wanted)
	}
}

// View is what snapshots need of the API.
func (k *API) View(now time.Time) snapshot.View {
	if k == nil {
		return snapshot.View{}
	}
	v := snapshot.View{Node: k.node.Load(), Pools: k.pools.Load()}
	v.Shared = k.shared.view(v.Node, now)
	if k.claims != nil {
		v.DRA, v.Claims = true, *k.claims.read.Load()
	}
	at, ok := k.slices.AsOf(now)
	v.Fresh = ok && now.Sub(at) <= maxAPIAge
	return v
}

// Node is what is known of the node and the time as of which it is; false
// where it is not known, or no longer.
func (k *API) Node(now time.Time) (snapshot.Node, time.Time, bool) {
	if k == nil {
		return snapshot.Node{}, now, false
	}
	s := k.node.Load()
	at, ok := k.nodes.AsOf(now)
	if s == nil || !ok || now.Sub(at) > maxAPIAge {
		return snapshot.Node{}, now, false
	}
	return *s, at, true
}

// Ages are those of the state of the API, by kind of object; since the start where
// it has not answered yet.
func (k *API) Ages(now time.Time) map[string]time.Duration {
	ages := map[string]time.Duration{}
	if k == nil {
		return ages
	}
	age := func(asOf func(time.Time) (time.Time, bool)) time.Duration {
		if at, ok := asOf(now); ok {
			return now.Sub(at)
		}
		return now.Sub(k.created)
	}
	ages[string(nodeObject)] = age(k.nodes.AsOf)
	if k.resource != nil && !k.notServed.Load() {
		ages[string(resourceSlices)] = age(k.slices.AsOf)
	}
	if k.shared != nil {
		ages[string(podObject)] = age(k.shared.pods.AsOf)
		if k.shared.devices != nil {
			ages[string(deviceObject)] = age(k.shared.devices.AsOf)
		}
	}
	return ages
}

// Close lets the connections go.
func (k *API) Close() {
	if k != nil {
		k.http.CloseIdleConnections()
	}
}
