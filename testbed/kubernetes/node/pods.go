// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubelet"
)

// follower keeps the kubelet in step with the cluster. What happens in the
// cluster only wakes it: it then compares all pods with all that the kubelet
// knows, so that neither the order of events nor a lost one matters.
type follower struct {
	pods   corelisters.PodLister
	claims resourcelisters.ResourceClaimLister
	wake   chan struct{}
	done   sync.WaitGroup
	known  map[kubelet.Pod]bool
}

// signal wakes the follower; several signals may become one.
func (f *follower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *follower) wait() { f.done.Wait() }

// follow starts following the node's pods until Stop.
func (n *Node) follow(ctx context.Context) error {
	client := n.cluster.Client()
	bound := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName=" + n.opts.Name
	}))
	all := informers.NewSharedInformerFactory(client, 0)
	f := &follower{
		pods:   bound.Core().V1().Pods().Lister(),
		claims: all.Resource().V1().ResourceClaims().Lister(),
		wake:   make(chan struct{}, 1),
		known:  map[kubelet.Pod]bool{},
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.signal() },
		UpdateFunc: func(any, any) { f.signal() },
		DeleteFunc: func(any) { f.signal() },
	}
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{bound.Core().V1().Pods().Informer(), all.Resource().V1().ResourceClaims().Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
		synced = append(synced, informer.HasSynced)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.pods, n.cancel = f, cancel
	bound.Start(running.Done())
	all.Start(running.Done())
	f.done.Go(func() {
		defer all.Shutdown()
		defer bound.Shutdown()
		for {
			select {
			case <-running.Done():
				return
			case <-f.wake:
				n.reconcile()
			}
		}
	})
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}

// reconcile gives and takes devices until the kubelet has what the pods need.
func (n *Node) reconcile() {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return
	}
	pods, err := n.pods.pods.List(labels.Everything())
	if err != nil {
		return // a lister reads memory
	}
	// First come, first served.
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	// What is over is freed before anything is given: the scheduler counts on it.
	there := map[kubelet.Pod]bool{}
	for _, pod := range pods {
		there[key(pod)] = true
		if finished(pod) {
			n.kubelet.Finish(key(pod))
		}
	}
	failures := map[kubelet.Pod]error{}
	for known := range n.pods.known {
		if !there[known] {
			n.kubelet.Release(known)
			delete(n.pods.known, known)
		}
	}
	for _, pod := range pods {
		if finished(pod) {
			continue
		}
		n.pods.known[key(pod)] = true
		if err := n.admit(pod); err != nil {
			failures[key(pod)] = err
		}
	}
	n.publishDecisions(pods, failures)
}

// publishDecisions keeps what the kubelet has decided, and lets the exporter show it.
func (n *Node) publishDecisions(pods []*corev1.Pod, failures map[kubelet.Pod]error) {
	decided := n.kubelet.Owners()
	n.mu.Lock()
	devices := n.devices
	n.mu.Unlock()
	err := n.boards.show(pods, devices, decided)
	owners := map[string][]kubelet.Owner{}
	for id, h := range decided {
		owners[devices.hwID(id)] = h
	}
	n.record(time.Now(), owners, failures, err)
}

// admit gives a pod what its containers ask for. Devices that it has already
// stay as they are.
func (n *Node) admit(pod *corev1.Pod) error {
	p := key(pod)
	if err := n.kubelet.AddPod(p, containers(pod)...); err != nil {
		return err
	}
	var errs []error
	names := podClaims(pod)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name, quantity := range c.Resources.Limits {
			if request := mapped(pod, c.Name, name); request != "" {
				errs = append(errs, n.claim(pod, c.Name, pod.Status.ExtendedResourceClaimStatus.ResourceClaimName, request))
			} else if extended(name) {
				_, err := n.kubelet.Allocate(p, c.Name, string(name), int(quantity.Value()))
				errs = append(errs, err)
			}
		}
		for _, use := range c.Resources.Claims {
			if name := names[use.Name]; name != "" {
				errs = append(errs, n.claim(pod, c.Name, name, use.Request))
			}
		}
	}
	return errors.Join(errs...)
}

// claim gives a container the devices of this node that the scheduler chose for
// a ResourceClaim, or for one request of it.
func (n *Node) claim(pod *corev1.Pod, container, name, request string) error {
	claim, err := n.pods.claims.ResourceClaims(pod.Namespace).Get(name)
	if err != nil {
		return err // its event wakes the follower
	}
	if claim.Status.Allocation == nil || !reserved(claim, pod) {
		return errors.New("claim " + name + " is not reserved for the pod")
	}
	given := kubelet.Claim{Namespace: claim.Namespace, Name: claim.Name, UID: string(claim.UID)}
	for _, r := range claim.Status.Allocation.Devices.Results {
		of, _, _ := strings.Cut(r.Request, "/") // <request>/<subrequest>
		if r.Driver != Driver || r.Pool != n.opts.Name || request != "" && request != of && request != r.Request {
			continue
		}
		device := kubelet.ClaimDevice{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
		if r.ShareID != nil {
			device.ShareID = string(*r.ShareID)
		}
		given.Devices = append(given.Devices, device)
	}
	return n.kubelet.AllocateClaim(key(pod), container, given)
}

func reserved(claim *resourcev1.ResourceClaim, pod *corev1.Pod) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
}

// mapped is the request of the pod's generated claim that serves a container's
// extended resource; empty if a device plugin does.
func mapped(pod *corev1.Pod, container string, name corev1.ResourceName) string {
	if pod.Status.ExtendedResourceClaimStatus == nil {
		return ""
	}
	for _, m := range pod.Status.ExtendedResourceClaimStatus.RequestMappings {
		if m.ContainerName == container && m.ResourceName == string(name) {
			return m.RequestName
		}
	}
	return ""
}

// extended is whether a resource is one of device plugins.
func extended(name corev1.ResourceName) bool {
	domain, _, found := strings.Cut(string(name), "/")
	return found && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

func key(pod *corev1.Pod) kubelet.Pod {
	return kubelet.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// containers lists a pod's containers in the order of its spec.
func containers(pod *corev1.Pod) (out []kubelet.Container) {
	for _, c := range pod.Spec.InitContainers {
		kind := kubelet.Init
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			kind = kubelet.Sidecar
		}
		out = append(out, kubelet.Container{Name: c.Name, Kind: kind})
	}
	for _, c := range pod.Spec.Containers {
		out = append(out, kubelet.Container{Name: c.Name, Kind: kubelet.App})
	}
	return out
}
