// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// load is what a service has to do, and what its pods report of it.
type load struct {
	requests int     // that its pods share evenly
	slots    int     // requests that a pod runs at once; the others wait
	kv       float64 // share of a pod's KV cache that a running request has; 0: the page has no such metric
	missing  int     // pods with no page
	partial  bool    // too many of its pods' GPUs do not report
}

// series is one that a service has, and its value.
type series struct {
	pod    string // "": of the service
	metric *names.Metric
	key    string // of its attribute, if it has one
	value  string // of its attribute
}

// report is what is known of a service with these pods.
func (l load) report(pods []string) map[series]float64 {
	partial := 0.
	if l.partial {
		partial = 1
	}
	all := map[series]float64{{metric: &names.ServicePartial}: partial}
	for i, pod := range pods {
		up := series{pod: pod, metric: &names.InferenceServerUp}
		if all[up] = 0; i < l.missing {
			continue
		}
		all[up] = 1
		requests := l.requests / len(pods)
		if i < l.requests%len(pods) {
			requests++
		}
		running := min(requests, l.slots)
		all[series{pod, &names.InferenceRequests, names.InferenceState, "running"}] = float64(running)
		all[series{pod, &names.InferenceRequests, names.InferenceState, "waiting"}] = float64(requests - running)
		if l.kv > 0 {
			all[series{pod, &names.InferenceKVCacheUtilization, names.InferenceCacheTier, "device"}] = min(1, l.kv*float64(running))
		}
	}
	return all
}

// triggers are the values of the example's two with that many pods: requests, and
// saturation.
func (l load) triggers(pods int32) (demand, saturation float64) {
	named := make([]string, pods)
	for i := range named {
		named[i] = strconv.Itoa(i)
	}
	var waiting, kv, caches float64
	for s, value := range l.report(named) {
		switch s.value {
		case "waiting":
			waiting += value
			demand += value
		case "running":
			demand += value
		case "device":
			kv += value
			caches++
		}
	}
	return demand, max(kv/max(caches, 1), waiting/max(demand, 1))
}

// check returns an error if an autoscaler has not measured this load with that many pods.
func (l load) check(pods int32, demand, saturation float64) error {
	wantDemand, wantSaturation := l.triggers(pods)
	// Kubernetes has thousandths, of the demand for each pod.
	if math.Abs(demand-wantDemand) > 0.001*float64(pods) || math.Abs(saturation-wantSaturation) > 0.001 {
		return fmt.Errorf("%g requests and a saturation of %g measured; with %d pods it is %g and %g", demand, saturation, pods, wantDemand, wantSaturation)
	}
	return nil
}

// service is a Deployment of which the test computes the series. Its methods may be called concurrently.
type service struct {
	name string

	mu   sync.Mutex
	load load

	known map[series]float64 // what was reported last; of the feed alone
}

func (s *service) set(l load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load = l
}

// feed reports what the engines of all services do until the test ends.
func (w *world) feed(services []*service) {
	w.repeat(250*time.Millisecond, func(ctx context.Context) error {
		for _, s := range services {
			if err := w.report(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// report sends a service's series; those that are no more end.
func (w *world) report(ctx context.Context, s *service) error {
	list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + s.name})
	if err != nil {
		return err
	}
	var pods []string
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			pods = append(pods, pod.Name)
		}
	}
	slices.Sort(pods)
	s.mu.Lock()
	l := s.load
	s.mu.Unlock()
	now := l.report(pods)
	md, at := pmetric.NewMetrics(), pcommon.NewTimestampFromTime(time.Now())
	for known := range s.known {
		if _, on := now[known]; !on {
			s.point(md, at, known).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
	}
	for known, value := range now {
		if p := s.point(md, at, known); known.metric.Int() {
			p.SetIntValue(int64(value))
		} else {
			p.SetDoubleValue(value)
		}
	}
	s.known = now
	return w.send(ctx, md)
}

// point adds a point without a value.
func (s *service) point(md pmetric.Metrics, at pcommon.Timestamp, of series) pmetric.NumberDataPoint {
	rm := md.ResourceMetrics().AppendEmpty()
	resource := rm.Resource().Attributes()
	resource.PutStr(names.K8sClusterName, clusterName)
	resource.PutStr(names.K8sNamespaceName, namespace)
	resource.PutStr(names.ServiceName, s.name)
	if of.pod != "" {
		resource.PutStr(names.K8sPodName, of.pod)
	}
	p := of.metric.Init(rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()).AppendEmpty()
	p.SetTimestamp(at)
	if of.key != "" {
		p.Attributes().PutStr(of.key, of.value)
	}
	return p
}

func (w *world) send(ctx context.Context, md pmetric.Metrics) error {
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.fed, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(answer.Body)
		return fmt.Errorf("the gateway answers %s: %s (%w)", answer.Status, text, err)
	}
	return nil
}

func TestReport(t *testing.T) {
	l := load{requests: 7, slots: 2, kv: 0.25, missing: 1}
	got := l.report([]string{"a", "b"})
	requests := func(pod, state string) series {
		return series{pod, &names.InferenceRequests, names.InferenceState, state}
	}
	require.Equal(t, map[series]float64{
		{metric: &names.ServicePartial}:                                               0,
		{pod: "a", metric: &names.InferenceServerUp}:                                  0,
		{pod: "b", metric: &names.InferenceServerUp}:                                  1,
		requests("b", "running"):                                                      2,
		requests("b", "waiting"):                                                      1,
		{"b", &names.InferenceKVCacheUtilization, names.InferenceCacheTier, "device"}: 0.5,
	}, got)
	demand, saturation := l.triggers(2)
	require.InDelta(t, 3, demand, 0)
	require.InDelta(t, 0.5, saturation, 0)
	_, saturation = load{requests: 20, slots: 2}.triggers(2)
	require.InDelta(t, 0.8, saturation, 1e-9)
}
