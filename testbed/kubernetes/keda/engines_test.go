// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/pages"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"
)

// served is a Deployment with an engine in each pod, and what is asked of them. Its
// methods may be called concurrently.
type served struct {
	name  string
	kind  string // one of pages.Names
	image string
	port  corev1.ContainerPort // none: the engine's own

	mu      sync.Mutex
	rate    float64   // requests a second that the pods share evenly
	missing float64   // share of the pods with no page, at least
	pods    []*engine // that run, the oldest first
}

// engine is that of a pod.
type engine struct {
	pod     string
	server  *http.Server
	page    *pages.Engine
	process *requests.Process
	since   time.Time
}

func (s *served) set(rate, missing float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rate, s.missing = rate, missing
}

// check returns an error if an autoscaler cannot have measured what the pods do.
func (s *served) check(_ int32, demand, _ float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.rate > 0) != (demand > 0) {
		return fmt.Errorf("%g requests measured", demand)
	}
	return nil
}

// absent is how many of that many pods have no page.
func (s *served) absent(pods int) int { return int(math.Ceil(s.missing * float64(pods))) }

// print is what an engine's page has now; false where nothing answers.
func (s *served) print(e *engine) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.pods, e); at < s.absent(len(s.pods)) {
		return nil, false // also of a pod that is gone
	}
	e.process.Advance(time.Since(e.since))
	return e.page.Page(pages.Input{Epoch: e.since, Pod: e.pod, States: []requests.State{e.process.State()}}), true
}

// play runs the engines of these services' pods until the test ends.
func (w *world) play(services []*served) {
	var serving sync.WaitGroup
	w.story.Cleanup(func() {
		for _, s := range services {
			s.keep(nil)
		}
		serving.Wait()
	})
	started := 0
	w.repeat(200*time.Millisecond, func(ctx context.Context) error {
		list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return err
		}
		for _, s := range services {
			var there []string
			for i := range list.Items {
				pod := &list.Items[i]
				if pod.Labels[label] != s.name {
					continue
				}
				if pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
					started++
					if err := w.run(ctx, s, pod, started, &serving); err != nil {
						return err
					}
				}
				if pod.DeletionTimestamp == nil {
					there = append(there, pod.Name)
				} else if err := w.Client().CoreV1().Pods(namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0)); err != nil && !apierrors.IsNotFound(err) {
					return err
				}
			}
			s.keep(there)
		}
		return nil
	})
}

// run starts the engine of a pod, at the loopback address of its number, and does what a
// kubelet would: the pod is ready.
func (w *world) run(ctx context.Context, s *served, pod *corev1.Pod, number int, serving *sync.WaitGroup) error {
	address := fmt.Sprintf("127.%d.%d.%d", 20+os.Getpid()%200, 9+number/250, 1+number%250)
	e, err := s.start(pod.Name, address, uint64(number), serving)
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now}},
	}
	if _, err = w.Client().CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return errors.Join(err, e.server.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = append(s.pods, e)
	return nil
}

// start starts an engine.
func (s *served) start(pod, address string, seed uint64, serving *sync.WaitGroup) (*engine, error) {
	page, err := pages.Find(s.kind)
	if err != nil {
		return nil, err
	}
	e := &engine{pod: pod, page: page, since: time.Now()}
	e.process, err = requests.New(requests.Config{Rate: 1, Output: 240}, seed, 0, func(int64) float64 {
		return s.rate / float64(len(s.pods)) // asked for by print alone
	}, pages.Bounds)
	if err != nil {
		return nil, err
	}
	port := page.Port
	if s.port.ContainerPort != 0 {
		port = int(s.port.ContainerPort)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	e.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		text, ok := s.print(e)
		if !ok || r.URL.Path != page.Path {
			panic(http.ErrAbortHandler)
		}
		rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = rw.Write(text)
	})}
	serving.Go(func() { _ = e.server.Serve(l) }) // until it is closed
	return e, nil
}

// keep ends the engines of all pods but these.
func (s *served) keep(pods []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = slices.DeleteFunc(s.pods, func(e *engine) bool {
		gone := !slices.Contains(pods, e.pod)
		if gone {
			_ = e.server.Close()
		}
		return gone
	})
}

// knows waits until the store knows which of a service's pods have no page, and that the
// others have nothing to do.
func (w *world) knows(t *testing.T, s *served, pods int) {
	t.Helper()
	of := fmt.Sprintf("{k8s_namespace_name=%q,service_name=%q}", namespace, s.name)
	up, busy := fmt.Sprintf("avg(inference_server_up%s)", of), fmt.Sprintf("sum(inference_server_requests%s)", of)
	share := 1 - float64(s.absent(pods))/float64(pods)
	w.eventually(t, "pages of "+s.name, func(ctx context.Context) error {
		for query, want := range map[string]float64{up: share, busy: 0} {
			got, err := w.server.value(ctx, query)
			if err != nil {
				return err
			}
			if math.Abs(got-want) > 1e-9 {
				return fmt.Errorf("%s is %g and not %g", query, got, want)
			}
		}
		return nil
	})
}
