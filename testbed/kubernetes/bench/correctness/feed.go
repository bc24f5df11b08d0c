// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package correctness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// blankPercent is DCGM_INT64_BLANK, which stands where there is no value. A
// percentage as all utilizations of DCGM are.
const blankPercent = 0x7ffffffffffffff0

const playNamespace = "inference"

// batch is what the agent of a pod sends at a moment, with the time of that; nil
// where it sends nothing.
func (p *gpuPod) batch(t time.Duration, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for i := range p.gpus {
		if !p.life.has(t) {
			continue
		}
		metrics := p.resource(md)
		// The agent sees that the pod holds the device, whatever the exporter does.
		p.point(i, &names.GPUAllocation, metrics, at).SetDoubleValue(1)
		if g := &p.gpus[i]; !g.silent.has(t) {
			p.utilization(i, metrics, at).SetDoubleValue(g.percent(t) / 100)
		}
	}
	return md
}

// ends is what the agent sends when the pod is gone.
func (p *gpuPod) ends(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	ended := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	for i := range p.gpus {
		metrics := p.resource(md)
		p.point(i, &names.GPUAllocation, metrics, at).SetFlags(ended)
		p.utilization(i, metrics, at).SetFlags(ended)
	}
	return md
}

// percent is what DCGM reports.
func (g *gpuDevice) percent(t time.Duration) float64 {
	if g.blank.has(t) {
		return blankPercent
	}
	return 100 * g.utilization(t)
}

// id of a device.
func (p *gpuPod) id(device int) string { return fmt.Sprintf("GPU-%s-%d", p.name, device) }

func (p *gpuPod) resource(md pmetric.Metrics) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	attrs := rm.Resource().Attributes()
	attrs.PutStr(names.K8sNamespaceName, playNamespace)
	attrs.PutStr(names.K8sPodName, p.name)
	attrs.PutStr(names.K8sPodUID, "uid-"+p.name)
	attrs.PutStr(names.K8sContainerName, "main")
	attrs.PutStr(names.ServiceName, p.service)
	return rm.ScopeMetrics().AppendEmpty().Metrics()
}

func (p *gpuPod) utilization(device int, metrics pmetric.MetricSlice, at time.Time) pmetric.NumberDataPoint {
	dp := p.point(device, &names.GPUUtilization, metrics, at)
	dp.Attributes().PutStr(names.HwGPUTask, "general")
	return dp
}

// point is one of a device: two devices of a pod are two series for everybody.
func (p *gpuPod) point(device int, metric *names.Metric, metrics pmetric.MetricSlice, at time.Time) pmetric.NumberDataPoint {
	dp := metric.Init(metrics.AppendEmpty()).AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	dp.Attributes().PutStr(names.HwID, p.id(device))
	return dp
}

// receiver is where batches go. One that is refused is not sent again, but
// counted.
type receiver struct {
	name    string
	url     atomic.Pointer[string]
	queue   chan []byte
	refused atomic.Int64
	lastErr atomic.Pointer[string]
}

func newReceiver(name string) *receiver { return &receiver{name: name, queue: make(chan []byte, 4096)} }

func (r *receiver) at(url string) { r.url.Store(&url) }

// Run posts what is queued, in its order.
func (r *receiver) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case body := <-r.queue:
			if err := post(ctx, *r.url.Load(), body); err != nil {
				r.failed(err)
			}
		}
	}
}

func (r *receiver) failed(err error) {
	text := err.Error()
	r.lastErr.Store(&text)
	r.refused.Add(1)
}

func post(ctx context.Context, url string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %s", url, answer.Status, text)
	}
	return nil
}

// agents send what the agents of all pods do, the same bytes to all receivers.
type agents struct {
	begin     time.Time
	receivers []*receiver
	batches   atomic.Int64
	tardy     atomic.Int64 // sent more than half a cadence after their time
	done      sync.WaitGroup
}

// startAgents begins; they end with ctx.
func startAgents(ctx context.Context, begin time.Time, services []*gpuService, receivers []*receiver) *agents {
	a := &agents{begin: begin, receivers: receivers}
	for _, r := range receivers {
		a.done.Go(func() { r.run(ctx) })
	}
	var pods []*gpuPod
	for _, s := range services {
		pods = append(pods, s.pods...)
	}
	for i, p := range pods {
		offset := cadence * time.Duration(i) / time.Duration(len(pods))
		a.done.Go(func() { a.play(ctx, p, offset) })
	}
	return a
}

// play is the agent of one pod.
func (a *agents) play(ctx context.Context, p *gpuPod, offset time.Duration) {
	ended := p.life.to == ever || p.lost
	for t := offset; ; t += cadence {
		due := a.begin.Add(t)
		if frame.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		if time.Since(due) > cadence/2 {
			a.tardy.Add(1)
		}
		md := p.batch(t, due)
		if !ended && t >= p.life.to {
			md, ended = p.ends(due), true
		}
		if md.ResourceMetrics().Len() == 0 {
			continue
		}
		body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
		if err != nil {
			panic(err) // it was made here
		}
		if p.late.has(t) {
			time.AfterFunc(late, func() { a.send(body) })
			time.AfterFunc(late+retryAfter, func() { a.send(body) })
		} else {
			a.send(body)
		}
	}
}

func (a *agents) send(body []byte) {
	a.batches.Add(1)
	for _, r := range a.receivers {
		select {
		case r.queue <- body:
		default:
			r.failed(fmt.Errorf("%s takes batches slower than they come", r.name))
		}
	}
}

// punctual fails where the machine was too busy for the agents to be so: then the
// truth was not what was sent.
func (a *agents) punctual() error {
	if n, all := a.tardy.Load(), a.batches.Load(); n*50 > all {
		return fmt.Errorf("%d of %d batches were sent more than %v after their time: the machine is too busy", n, all, cadence/2)
	}
	return nil
}

// forgive forgets what was refused so far.
func (a *agents) forgive() {
	for _, r := range a.receivers {
		r.refused.Store(0)
	}
}

// taken fails where a receiver has refused some: then not all had the same data.
func (a *agents) taken() error {
	for _, r := range a.receivers {
		if n := r.refused.Load(); n > 0 {
			return fmt.Errorf("%s refused %d batches: %s", r.name, n, *r.lastErr.Load())
		}
	}
	return nil
}

// runClock is the time since the begin of the run, once it has begun.
type runClock struct{ began atomic.Pointer[time.Time] }

func (c *runClock) start() time.Time {
	now := time.Now()
	c.began.Store(&now)
	return now
}

func (c *runClock) now() (t time.Duration, began bool) {
	begin := c.began.Load()
	if begin == nil {
		return 0, false
	}
	return time.Since(*begin), true
}

// pages are the exporters of all pods, one a page of one server.
type pages struct {
	address string
	paths   []string
	server  *http.Server
}

// startPages serves them. A pod that is silent or lost has an exporter that answers
// with an error; one that is not there has an empty page, as all before the begin.
func startPages(clock *runClock, services []*gpuService) (*pages, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	p := &pages{address: listener.Addr().String(), server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	for _, s := range services {
		for _, pod := range s.pods {
			path := "/" + pod.name
			p.paths = append(p.paths, path)
			mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
				t, began := clock.now()
				if !began {
					return
				}
				text, up := pod.page(t)
				if !up {
					http.Error(w, "the exporter is down", http.StatusServiceUnavailable)
					return
				}
				_, _ = io.WriteString(w, text) // the client may have gone
			})
		}
	}
	go func() { _ = p.server.Serve(listener) }() // ends with close
	return p, nil
}

func (p *pages) close() { _ = p.server.Close() }

// page is the text of a pod's exporter, with the pod's labels as dcgm-exporter has
// them where it is configured to take the service's.
func (p *gpuPod) page(t time.Duration) (text string, up bool) {
	if t >= p.life.to && p.lost {
		return "", false
	}
	var b strings.Builder
	for i := range p.gpus {
		g := &p.gpus[i]
		if !p.life.has(t) || g.silent.has(t) {
			continue
		}
		fmt.Fprintf(&b, "DCGM_FI_DEV_GPU_UTIL{gpu=%q,UUID=%q,namespace=%q,pod=%q,container=\"main\",service=%q} %s\n",
			strconv.Itoa(i), p.id(i), playNamespace, p.name, p.service, strconv.FormatFloat(g.percent(t), 'f', -1, 64))
	}
	return "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + b.String(), !p.life.has(t) || b.Len() > 0
}
