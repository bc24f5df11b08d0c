// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8swatch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

// koordinatorDevice is what Koordinator's agent writes about a node, under its name.
var koordinatorDevice = schema.GroupVersionResource{Group: "scheduling.koordinator.sh", Version: "v1alpha1", Resource: "devices"}

// shared follows what schedulers that share boards write on the pods of the node. A nil
// shared knows nothing.
type shared struct {
	cfg     Config
	tel     Telemetry
	core    corev1client.CoreV1Interface
	dynamic dynamic.Interface // nil without Koordinator
	pods    *k8swatch.Store[sharing.Pod]
	devices *k8swatch.Store[sharing.Boards]
}

// newShared returns nil where boards are not shared. changed is called when something may
// be another.
func newShared(cfg Config, client *rest.Config, http *http.Client, core corev1client.CoreV1Interface, tel Telemetry, changed func()) (*shared, error) {
	if cfg.Sharing == nil {
		return nil, nil
	}
	s := &shared{cfg: cfg, tel: tel, core: core}
	s.pods = k8swatch.New(k8swatch.Config[sharing.Pod]{Keep: cfg.Sharing.Keep, Changed: changed})
	if !slices.ContainsFunc(cfg.Sharing.Schedulers, func(s *sharing.Scheduler) bool { return s.Name == names.SharingKoordinator }) {
		return s, nil
	}
	s.devices = k8swatch.New(k8swatch.Config[sharing.Boards]{Keep: keepBoards, Changed: changed})
	var err error
	s.dynamic, err = dynamic.NewForConfigAndClient(dynamic.ConfigFor(client), http)
	return s, err
}

func keepBoards(obj any) (sharing.Boards, bool) {
	device, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false
	}
	return sharing.KoordinatorBoards(device.Object), true
}

func (s *shared) start(ctx context.Context, work *sync.WaitGroup) {
	if s == nil {
		return
	}
	pods := s.core.Pods(metav1.NamespaceAll)
	work.Go(func() {
		s.pods.Run(ctx, &k8swatch.Source{
			Kind: &corev1.Pod{},
			List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return pods.Watch(ctx, o)
			},
			Selector: fields.OneTermEqualSelector("spec.nodeName", s.cfg.Node).String(),
			Requests: s.tel.requests(podObject),
		})
	})
	if s.devices == nil {
		return
	}
	devices := s.dynamic.Resource(koordinatorDevice)
	work.Go(func() {
		s.devices.Run(ctx, &k8swatch.Source{
			Kind: &unstructured.Unstructured{},
			List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return devices.List(ctx, o) },
			Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return devices.Watch(ctx, o)
			},
			Selector: fields.OneTermEqualSelector("metadata.name", s.cfg.Node).String(),
			Requests: s.tel.requests(deviceObject),
		})
	})
}

// view is what snapshots need of it; nil: nothing is shared.
func (s *shared) view(node *snapshot.Node, now time.Time) *snapshot.Shared {
	if s == nil {
		return nil
	}
	v := &snapshot.Shared{Reader: s.cfg.Sharing, Pods: map[types.NamespacedName]sharing.Pod{}}
	at, ok := s.pods.AsOf(now)
	v.Fresh = ok && now.Sub(at) <= maxAPIAge
	s.pods.Each(func(name types.NamespacedName, pod sharing.Pod) { v.Pods[name] = pod })
	v.Boards, v.Memory = node.Boards()
	v.Listed = node != nil && (s.devices == nil || s.devices.Listed())
	if s.devices == nil {
		return v
	}
	if boards, ok := s.devices.Get(types.NamespacedName{Name: s.cfg.Node}); ok {
		v.Boards = maps.Clone(v.Boards)
		if v.Boards == nil {
			v.Boards = map[string]sharing.Boards{}
		}
		v.Boards[names.SharingKoordinator] = boards
	}
	return v
}
