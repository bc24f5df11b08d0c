// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// Options of a runner. Cluster, Selector, Dir and Program must be given.
type Options struct {
	Cluster *cluster.Cluster
	// Selector is the cluster's Unplayed: which pods to run.
	Selector string
	// Dir gets volumes and logs: <namespace>/<pod>/<container>.log.
	Dir string
	// Program is what runs in place of a container's image and command; an error
	// is the pod's ImagePullBackOff. A proxy is run instead where it has one.
	Program func(pod *corev1.Pod, c *corev1.Container) (Program, error)
	// HostPath is the folder that stands for a path of a node. An error keeps the
	// pod from starting, as a path that is missing does. nil: a folder in Dir.
	HostPath func(node, path string) (string, error)
	// Adapt gives a program what it needs to find things that cannot be rewritten:
	// paths that are neither in arguments nor in files. nil: nothing.
	Adapt func(in *Inside) (args, env []string)
}

// Program is what runs for a container.
type Program struct {
	// Path of a file that runs with Args and the container's arguments.
	Path string
	Args []string
	// Proxy is where connections to the pod's ports go to, as host:port, in place
	// of a program.
	Proxy string
}

// Runner runs pods until Stop.
type Runner struct {
	opts      Options
	addresses *addresses
	services  corelisters.ServiceLister
	volumes   *volumes
	cancel    context.CancelFunc
	all       sync.WaitGroup

	mu      sync.Mutex // guards what follows
	pods    map[types.UID]*pod
	proxies map[string]*service // by namespace/name/port
	errs    []error
	stopped bool
}

// Start starts running pods.
func Start(ctx context.Context, o Options) (*Runner, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Runner{opts: o, addresses: newAddresses(), cancel: cancel, pods: map[types.UID]*pod{}, proxies: map[string]*service{}}
	client := o.Cluster.Client()
	r.volumes = &volumes{client: client, dir: filepath.Join(o.Dir, "volumes"), fail: r.fail}
	selected := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.LabelSelector = o.Selector
	}))
	everything := informers.NewSharedInformerFactory(client, 0)
	r.services = everything.Core().V1().Services().Lister()
	var synced []cache.InformerSynced
	for informer, handle := range map[cache.SharedIndexInformer]func(any, bool){
		selected.Core().V1().Pods().Informer():                     r.onPod,
		everything.Core().V1().Services().Informer():               r.onService,
		everything.Core().V1().PersistentVolumeClaims().Informer(): r.volumes.onClaim,
		everything.Core().V1().PersistentVolumes().Informer():      r.volumes.onVolume,
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { handle(o, true) },
			UpdateFunc: func(_, o any) { handle(o, true) },
			DeleteFunc: func(o any) {
				if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = unknown.Obj
				}
				handle(o, false)
			},
		})
		if err != nil {
			cancel()
			return nil, err
		}
		synced = append(synced, informer.HasSynced)
	}
	if err := r.volumes.createStorageClass(ctx); err != nil {
		cancel()
		return nil, err
	}
	for _, factory := range []informers.SharedInformerFactory{everything, selected} {
		factory.Start(running.Done())
		r.all.Go(func() {
			<-running.Done()
			factory.Shutdown()
		})
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		r.Stop()
		return nil, fmt.Errorf("runner: %w", ctx.Err())
	}
	return r, nil
}

// Stop kills what runs. Pods stay in the cluster as they are.
func (r *Runner) Stop() {
	r.mu.Lock()
	r.stopped = true
	pods := r.pods
	r.pods = map[types.UID]*pod{}
	proxies := r.proxies
	r.proxies = map[string]*service{}
	r.mu.Unlock()
	r.cancel()
	for _, p := range pods {
		p.kill()
	}
	for _, s := range proxies {
		s.close()
	}
	r.all.Wait()
}

// Err is what the runner could not do, such as writing a pod's status.
func (r *Runner) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

func (r *Runner) fail(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", what, err))
	}
}

// onPod starts, ends and forgets pods.
func (r *Runner) onPod(object any, there bool) {
	spec := object.(*corev1.Pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || spec.Spec.NodeName == "" {
		return
	}
	p, known := r.pods[spec.UID]
	switch {
	case !there && known:
		delete(r.pods, spec.UID)
		r.all.Go(p.kill)
	case there && !known:
		p = newPod(r, spec.DeepCopy())
		r.pods[spec.UID] = p
		r.all.Go(p.run)
		if spec.DeletionTimestamp != nil {
			p.terminate(spec)
		}
	case there && spec.DeletionTimestamp != nil:
		p.terminate(spec)
	}
}

// Inside is a running pod as its programs see it.
type Inside struct {
	Namespace, Name, Node string
	// Container is which one is being started; empty from Pod.
	Container string
	// Address is the pod's, Loopback its own localhost.
	Address, Loopback string
	// Mounts are folders by the path that the container knows them under.
	Mounts map[string]string
	// Kubeconfig acts as the pod's service account; empty if it has no token.
	Kubeconfig string
	// Log is the file with what the container printed.
	Log string
}

// Pod is what runs under a name, as its first container sees it.
func (r *Runner) Pod(namespace, name string) (Inside, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.spec.Namespace == namespace && p.spec.Name == name {
			return p.inside(""), nil
		}
	}
	return Inside{}, fmt.Errorf("no pod %s/%s runs here", namespace, name)
}

// PowerOff kills all that runs on a node at once. Its pods stay in the cluster;
// nothing starts there again.
func (r *Runner) PowerOff(node string) {
	r.mu.Lock()
	var pods []*pod
	for _, p := range r.pods {
		if p.spec.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	r.mu.Unlock()
	for _, p := range pods {
		p.kill()
	}
}

// logFile is where a container's output goes.
func (r *Runner) logFile(namespace, pod, container string) string {
	return filepath.Join(r.opts.Dir, namespace, pod, container+".log")
}
