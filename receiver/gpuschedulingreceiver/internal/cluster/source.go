// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"sync"
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

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuschedulingreceiver/internal/capacity"
)

// listTimeout bounds a list, which is of a whole cluster.
const listTimeout = time.Minute

// The kinds of objects, as telemetry names them.
const (
	NodeObjects  = "nodes"
	SliceObjects = "resource_slices"
	classObjects = "device_classes"
)

// Config is what to follow.
type Config struct {
	Nodes    NodeKeeper
	Drivers  map[string]bool // of DRA; nil: ResourceSlices and DeviceClasses are not read
	MaxNodes int
}

// Telemetry counts what the Source does. It is safe for concurrent use.
type Telemetry interface {
	// Asked counts a request about a kind of object by how it ended.
	Asked(ctx context.Context, object, result string)
	// NodesRefused counts nodes that MaxNodes left out.
	NodesRefused(ctx context.Context, nodes int)
}

// Source follows nodes with goroutines of its own. Anyone who reads gets what is known and
// never waits.
type Source struct {
	cfg    Config
	tel    Telemetry
	logger *zap.Logger

	http     *http.Client
	core     corev1client.CoreV1Interface
	resource resourcev1client.ResourceV1Interface

	nodes   *k8swatch.Store[*capacity.Node]
	slices  *k8swatch.Store[Slice] // nil: not read
	classes *k8swatch.Store[Class] // nil: not read
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// maxClasses bounds the DeviceClasses: an administrator makes them.
const maxClasses = 10_000

// New makes the clients. It makes no request.
func New(cfg Config, client *rest.Config, tel Telemetry, logger *zap.Logger) (*Source, error) {
	s := &Source{cfg: cfg, tel: tel, logger: logger}
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
	refused := func(n int) { tel.NodesRefused(context.Background(), n) }
	s.nodes = k8swatch.New(k8swatch.Config[*capacity.Node]{Keep: cfg.Nodes.Keep, Limit: cfg.MaxNodes, Refused: refused})
	if cfg.Drivers != nil {
		s.slices = k8swatch.New(k8swatch.Config[Slice]{Keep: (&SliceKeeper{cfg.Drivers}).Keep, Limit: 8 * cfg.MaxNodes, Refused: refused})
		s.classes = k8swatch.New(k8swatch.Config[Class]{Keep: (&ClassKeeper{cfg.Drivers}).Keep, Limit: maxClasses, Refused: func(int) {}})
	}
	return s, nil
}

// Start begins to follow the API. It does not wait for it.
func (s *Source) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	nodes := s.core.Nodes()
	run(ctx, s, NodeObjects, s.nodes, k8swatch.Source{
		Kind:  &corev1.Node{},
		List:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return nodes.Watch(ctx, o) },
	})
	if s.slices == nil {
		return
	}
	all := s.resource.ResourceSlices()
	run(ctx, s, SliceObjects, s.slices, k8swatch.Source{
		Kind:     &resourcev1.ResourceSlice{},
		List:     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		Watch:    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, o) },
		Optional: true, // without slices extended resources are known all the same
	})
	classes := s.resource.DeviceClasses()
	run(ctx, s, classObjects, s.classes, k8swatch.Source{
		Kind:     &resourcev1.DeviceClass{},
		List:     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return classes.List(ctx, o) },
		Watch:    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return classes.Watch(ctx, o) },
		Optional: true, // without classes pods that wait are counted under the name that they request
	})
}

// run fills a store until ctx ends.
func run[T any](ctx context.Context, s *Source, object string, into *k8swatch.Store[T], from k8swatch.Source) {
	from.ListTimeout = listTimeout
	from.Requests = &k8sclient.Requests{
		Object: object, Logger: s.logger,
		Count:   func(ctx context.Context, object string, res k8sclient.Result) { s.tel.Asked(ctx, object, string(res)) },
		Failure: "the devices of nodes cannot be read from the Kubernetes API", Remedy: remedy,
	}
	s.work.Go(func() { into.Run(ctx, &from) })
}

func remedy(object string, result k8sclient.Result) string {
	switch {
	case result == k8sclient.ResultDenied && object == NodeObjects:
		return "let the service account list and watch nodes: until then nothing is known of free devices and of what waits for them"
	case result == k8sclient.ResultDenied && object == classObjects:
		return "let the service account list and watch deviceclasses in resource.k8s.io, or set dra::enabled to false: until then pods that wait for a device class, or for an extended resource that one serves, are counted under its name and not under the driver"
	case result == k8sclient.ResultDenied:
		return "let the service account list and watch resourceslices in resource.k8s.io, or set dra::enabled to false: until then devices of DRA drivers are not counted"
	case result == k8sclient.ResultNotServed:
		return "the cluster does not serve resource.k8s.io/v1, as Kubernetes 1.34 and newer do: nothing is missing where no workload uses DRA; dra::enabled: false stops these requests"
	case result == k8sclient.ResultNoAnswer, result == k8sclient.ResultTimeout:
		return "check that the API server is up and can be reached from here; nothing is emitted meanwhile"
	default:
		return "look at the API server's log"
	}
}

// Shutdown ends what Start began, and waits for it.
func (s *Source) Shutdown() {
	if s.cancel != nil {
		s.cancel()
		s.work.Wait()
	}
	s.http.CloseIdleConnections()
}

// Listed is whether all is known, or is known not to be readable.
func (s *Source) Listed() bool {
	return s.nodes.Listed() && (s.slices == nil || s.slices.Listed() && s.classes.Listed())
}

// Nodes are those of the cluster, without devices of drivers.
func (s *Source) Nodes() []*capacity.Node {
	var nodes []*capacity.Node
	s.nodes.Each(func(_ types.NamespacedName, n *capacity.Node) { nodes = append(nodes, n) })
	return nodes
}

// SlicesAsOf is the time at which all ResourceSlices were last as the API has them; false where
// some of them are not known.
func (s *Source) SlicesAsOf(now time.Time) (time.Time, bool) {
	if s.slices == nil || !s.slices.Whole() {
		return time.Time{}, false
	}
	return s.slices.AsOf(now)
}

// Slices are the devices of drivers.
func (s *Source) Slices() []Slice {
	var all []Slice
	s.slices.Each(func(_ types.NamespacedName, slice Slice) { all = append(all, slice) })
	return all
}

// Served are the drivers that serve what pods request, as far as it is known.
func (s *Source) Served() Served {
	if s.classes == nil {
		return nil
	}
	var all []Class
	s.classes.Each(func(_ types.NamespacedName, c Class) { all = append(all, c) })
	return ServedBy(all)
}

// AsOf is the time at which each kind of object was last as the API has it, which is now
// while it is watched; the zero time where it was never listed. Kinds that the API does not serve
// are left out.
func (s *Source) AsOf(now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	out[NodeObjects], _ = s.nodes.AsOf(now)
	if s.slices == nil {
		return out
	}
	if s.slices.Served() {
		out[SliceObjects], _ = s.slices.AsOf(now)
	}
	if s.classes.Served() {
		out[classObjects], _ = s.classes.AsOf(now)
	}
	return out
}
