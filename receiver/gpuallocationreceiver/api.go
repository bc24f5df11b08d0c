// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

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
)

// maxAPIAge is for how long what the API said last is taken for what is true now,
// when it no longer answers.
const maxAPIAge = 5 * time.Minute

// kubeAPI is what the Kubernetes API says about this node. Its goroutines follow
// the API on their own; whoever reads gets what is known, and never waits.
type kubeAPI struct {
	cfg     *Config
	tel     *telemetry
	changed chan struct{} // has room for one: something is known that was not
	emit    func()        // told when the node is another

	core     corev1client.CoreV1Interface
	resource resourcev1client.ResourceV1Interface // nil without DRA
	http     *http.Client

	nodes     *k8swatch.Store[nodeState]
	slices    *k8swatch.Store[keptSlice]
	node      atomic.Pointer[nodeState] // nil: not known
	pools     atomic.Pointer[pools]     // nil: never listed
	claims    *claims                   // nil without DRA
	created   time.Time
	notServed atomic.Bool // resource.k8s.io/v1, by its last answer
}

// newKubeAPI makes the clients. It makes no request.
func newKubeAPI(cfg *Config, client *rest.Config, tel *telemetry, emit func()) (*kubeAPI, error) {
	k := &kubeAPI{cfg: cfg, tel: tel, emit: emit, changed: make(chan struct{}, 1), created: time.Now()}
	k.nodes = k8swatch.New(k8swatch.Config[nodeState]{Keep: keepNode, Changed: k.nodeChanged})
	k.slices = k8swatch.New(k8swatch.Config[keptSlice]{Keep: sliceKeeper{cfg.DRA.drivers()}.keep, Changed: k.slicesChanged})
	var err error
	if k.http, err = rest.HTTPClientFor(client); err != nil {
		return nil, err
	}
	if k.core, err = corev1client.NewForConfigAndClient(client, k.http); err != nil {
		return nil, err
	}
	if cfg.DRA.Enabled {
		dra, err := resourcev1client.NewForConfigAndClient(client, k.http)
		if err != nil {
			return nil, err
		}
		k.resource = dra
		k.claims = newClaims(func(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
			return dra.ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
		}, tel, k.signal)
	}
	return k, nil
}

// start begins to follow the API, until ctx ends.
func (k *kubeAPI) start(ctx context.Context, work *sync.WaitGroup) {
	work.Go(func() {
		k.followNode(ctx)
	})
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

func (k *kubeAPI) followNode(ctx context.Context) {
	nodes := k.core.Nodes()
	k.nodes.Run(ctx, &k8swatch.Source{
		Kind: &corev1.Node{},
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return nodes.Watch(ctx, o)
		},
		Selector: fields.OneTermEqualSelector("metadata.name", k.cfg.NodeName).String(),
		Requests: newRequests(nodeObject, k.tel),
	})
}

func (k *kubeAPI) nodeChanged() {
	var is *nodeState
	if s, ok := k.nodes.Get(types.NamespacedName{Name: k.cfg.NodeName}); ok {
		is = &s
	}
	was := k.node.Swap(is)
	if (was == nil) != (is == nil) || was != nil && *was != *is {
		k.emit()
	}
	if was.sharing() != is.sharing() {
		k.signal()
	}
}

func (k *kubeAPI) followSlices(ctx context.Context) {
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
		Selector: fields.OneTermEqualSelector(resourcev1.ResourceSliceSelectorNodeName, k.cfg.NodeName).String(),
		Requests: newRequests(resourceSlices, k.tel),
	})
}

func (k *kubeAPI) slicesChanged() {
	kept := map[string]keptSlice{}
	k.slices.Each(func(n types.NamespacedName, s keptSlice) { kept[n.Name] = s })
	is := newPools(kept, k.cfg.MaxDevices)
	if was := k.pools.Load(); was == nil || !reflect.DeepEqual(was, is) {
		k.pools.Store(is)
		k.signal()
	}
}

// signal says that the kubelet is to be asked now: what it says may mean more
// than a moment ago.
func (k *kubeAPI) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// changes is where signals arrive; nil without API, on which nothing ever does.
func (k *kubeAPI) changes() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.changed
}

// want says which claims the kubelet lists.
func (k *kubeAPI) want(wanted map[claimID]poolDevice) {
	if k != nil && k.claims != nil {
		k.claims.want(wanted)
	}
}

// view is what the API said, as far as snapshots need it. It is immutable.
type view struct {
	dra    bool              // DRA is asked about
	claims map[claimID]claim // those that were read
	pools  *pools            // nil: never listed
	fresh  bool              // pools are as the API has them, or were until a while ago
	node   *nodeState        // nil: not known
}

func (k *kubeAPI) view(now time.Time) view {
	if k == nil {
		return view{}
	}
	v := view{node: k.node.Load(), pools: k.pools.Load()}
	if k.claims != nil {
		v.dra, v.claims = true, *k.claims.read.Load()
	}
	at, ok := k.slices.AsOf(now)
	v.fresh = ok && now.Sub(at) <= maxAPIAge
	return v
}

// nodeNow is what is known of the node and the time as of which it is; false
// where it is not known, or no longer.
func (k *kubeAPI) nodeNow(now time.Time) (nodeState, time.Time, bool) {
	if k == nil {
		return nodeState{}, now, false
	}
	s := k.node.Load()
	at, ok := k.nodes.AsOf(now)
	if s == nil || !ok || now.Sub(at) > maxAPIAge {
		return nodeState{}, now, false
	}
	return *s, at, true
}

// ages are those of what the API said, by kind of object; since the start where
// it said nothing yet.
func (k *kubeAPI) ages(now time.Time) map[object]time.Duration {
	ages := map[object]time.Duration{}
	if k == nil {
		return ages
	}
	age := func(asOf func(time.Time) (time.Time, bool)) time.Duration {
		if at, ok := asOf(now); ok {
			return now.Sub(at)
		}
		return now.Sub(k.created)
	}
	ages[nodeObject] = age(k.nodes.AsOf)
	if k.resource != nil && !k.notServed.Load() {
		ages[resourceSlices] = age(k.slices.AsOf)
	}
	return ages
}

// close lets the connections go.
func (k *kubeAPI) close() {
	if k != nil {
		k.http.CloseIdleConnections()
	}
}
