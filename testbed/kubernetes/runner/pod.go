// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	retry       = 250 * time.Millisecond // of what a pod waits for
	firstPause  = time.Second            // before the first restart; it doubles
	longestWait = 30 * time.Second       // between two
)

// pod is one pod that runs here.
type pod struct {
	r                 *Runner
	spec              *corev1.Pod // as it was when it was scheduled
	dir               string
	address, loopback string
	ctx               context.Context // ends when nothing is to be started any more
	cancel            context.CancelFunc
	finished          chan struct{} // closed when run has returned

	reporting sync.Mutex // one status after the other

	mu         sync.Mutex                   // guards what follows
	mounts     map[string]map[string]string // folder by container and path; the inner ones do not change
	kubeconfig string
	stopping   bool
	dead       bool
	waiting    string // for what, before containers run
	containers map[string]*container
}

// container is what is known of one.
type container struct {
	run        *process
	started    time.Time
	restarts   int32
	ready      bool
	terminated *corev1.ContainerStateTerminated // the last run
	waiting    string                           // why it does not run
	message    string
}

func newPod(r *Runner, spec *corev1.Pod) *pod {
	p := &pod{r: r, spec: spec, dir: filepath.Join(r.opts.Dir, spec.Namespace, spec.Name, string(spec.UID)),
		mounts: map[string]map[string]string{}, containers: map[string]*container{}, finished: make(chan struct{})}
	p.address, p.loopback = r.addresses.pod()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for _, c := range spec.Spec.InitContainers {
		p.containers[c.Name] = &container{waiting: "PodInitializing"}
	}
	for _, c := range spec.Spec.Containers {
		p.containers[c.Name] = &container{waiting: "ContainerCreating"}
	}
	return p
}

// inside is the pod as one of its containers sees it.
func (p *pod) inside(container string) Inside {
	named := container
	if named == "" {
		named = p.spec.Spec.Containers[0].Name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Inside{
		Namespace: p.spec.Namespace, Name: p.spec.Name, Node: p.spec.Spec.NodeName, Container: container,
		Address: p.address, Loopback: p.loopback, Mounts: p.mounts[named], Kubeconfig: p.kubeconfig,
		Log: p.r.logFile(p.spec.Namespace, p.spec.Name, named),
	}
}

func (p *pod) sources() sources {
	return sources{client: p.r.opts.Cluster.Client(), pod: p.spec, address: p.address}
}

// run runs the pod until it is to end.
func (p *pod) run() {
	defer close(p.finished)
	for {
		err := p.mount(p.ctx)
		if err == nil {
			break
		}
		p.wait(err.Error())
		if !p.pause(retry) {
			return
		}
	}
	p.wait("")
	for i := range p.spec.Spec.InitContainers {
		if !p.runInit(&p.spec.Spec.InitContainers[i]) {
			return
		}
	}
	var all sync.WaitGroup
	for i := range p.spec.Spec.Containers {
		c := &p.spec.Spec.Containers[i]
		all.Go(func() { p.keepRunning(c) })
		all.Go(func() { p.probe(c) })
	}
	all.Wait()
}

// runInit runs a container until it ends well; false: the pod is to end.
func (p *pod) runInit(c *corev1.Container) bool {
	for attempt := 0; p.ctx.Err() == nil; attempt++ {
		if run := p.start(c); run != nil {
			<-run.done
			p.ended(c.Name, run)
			if run.exitCode() == 0 {
				return true
			}
		}
		p.pause(backOff(attempt))
	}
	return false
}

// keepRunning starts a container whenever it has ended, with growing pauses.
func (p *pod) keepRunning(c *corev1.Container) {
	for attempt := 0; p.ctx.Err() == nil; attempt++ {
		if run := p.start(c); run != nil {
			<-run.done
			p.ended(c.Name, run)
			if policy := p.spec.Spec.RestartPolicy; policy == corev1.RestartPolicyNever ||
				policy == corev1.RestartPolicyOnFailure && run.exitCode() == 0 {
				return
			}
		}
		p.pause(backOff(attempt))
	}
}

func backOff(attempt int) time.Duration {
	return min(firstPause<<min(attempt, 10), longestWait)
}

// start starts a container; nil: it could not, which its status reports, or the pod
// is to end.
func (p *pod) start(c *corev1.Container) *process {
	if p.ctx.Err() != nil {
		return nil
	}
	run, err := p.startContainer(p.ctx, c)
	p.mu.Lock()
	if p.stopping { // meanwhile: nothing else knows it
		p.mu.Unlock()
		if run != nil {
			run.signal(syscall.SIGKILL)
			<-run.done
		}
		return nil
	}
	state := p.containers[c.Name]
	if err != nil {
		state.waiting, state.message = "CreateContainerError", err.Error()
	} else {
		state.run, state.started, state.waiting, state.message = run, time.Now(), "", ""
	}
	p.mu.Unlock()
	p.report()
	return run
}

// ended notes how a container ended.
func (p *pod) ended(name string, run *process) {
	p.mu.Lock()
	state := p.containers[name]
	reason := "Error"
	if run.exitCode() == 0 {
		reason = "Completed"
	}
	state.terminated = &corev1.ContainerStateTerminated{
		ExitCode: run.exitCode(), Reason: reason, StartedAt: metav1.NewTime(state.started), FinishedAt: metav1.Now(),
	}
	state.run, state.ready, state.waiting = nil, false, "CrashLoopBackOff"
	state.restarts++
	p.mu.Unlock()
	p.report()
}

// probe keeps up to date whether a container is ready, and ends it when it is not alive.
func (p *pod) probe(c *corev1.Container) {
	of := prober{container: c, address: p.address}
	for p.pause(often) {
		p.mu.Lock()
		state := p.containers[c.Name]
		run, started, was := state.run, state.started, state.ready
		p.mu.Unlock()
		if run == nil {
			continue
		}
		if ready := of.ready(); ready != was {
			p.mu.Lock()
			changed := state.run == run && state.ready != ready
			if changed {
				state.ready = ready
			}
			p.mu.Unlock()
			if changed {
				p.report()
			}
		}
		if of.hung(run, started) {
			run.signal(syscall.SIGKILL)
		}
	}
}

// wait sets what the pod waits for.
func (p *pod) wait(what string) {
	p.mu.Lock()
	changed := p.waiting != what
	p.waiting = what
	p.mu.Unlock()
	if changed || what == "" {
		p.report()
	}
}

// terminate ends the pod as a kubelet does: SIGTERM, grace, SIGKILL, and then it
// is removed from the cluster.
func (p *pod) terminate(spec *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping || p.dead {
		return
	}
	p.stopping = true
	p.cancel()
	grace := 30 * time.Second
	if s := spec.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	runs := p.running()
	p.r.all.Go(func() {
		for _, run := range runs {
			run.signal(syscall.SIGTERM)
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		for _, run := range runs {
			select {
			case <-run.done:
			case <-timer.C:
				timer.Reset(0) // for the others
				run.signal(syscall.SIGKILL)
				<-run.done
			}
		}
		<-p.finished
		now := int64(0)
		err := p.r.opts.Cluster.Client().CoreV1().Pods(spec.Namespace).Delete(context.Background(), spec.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(spec.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			p.r.fail("pod "+spec.Name, err)
		}
	})
}

// kill ends everything at once and reports nothing to the cluster.
func (p *pod) kill() {
	p.mu.Lock()
	p.stopping, p.dead = true, true
	p.cancel()
	runs := p.running()
	p.mu.Unlock()
	for _, run := range runs {
		run.signal(syscall.SIGKILL)
	}
	<-p.finished
}

func (p *pod) running() (runs []*process) {
	for _, c := range p.containers {
		if c.run != nil {
			runs = append(runs, c.run)
		}
	}
	return runs
}

// pause waits; false: the pod is to end.
func (p *pod) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// report writes the pod's status to the API server.
func (p *pod) report() {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	status := statusOf(p.spec, p.address, p.waiting, p.containers)
	p.mu.Unlock()
	patch, err := json.Marshal(map[string]any{"status": status, "metadata": map[string]any{"uid": p.spec.UID}})
	if err == nil {
		_, err = p.r.opts.Cluster.Client().CoreV1().Pods(p.spec.Namespace).Patch(context.Background(), p.spec.Name,
			types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	// A pod that was removed meanwhile, or another one under its name.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		p.r.fail("status of "+p.spec.Name, err)
	}
}

// ready is whether all containers are, and the pod is not about to end.
func (p *pod) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.spec.Spec.Containers {
		if !p.containers[c.Name].ready {
			return false
		}
	}
	return !p.stopping
}
