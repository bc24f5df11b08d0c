// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package correctness measures how often averages of services are right while faults
// happen, beside PromQL.
package correctness

import (
	"context"
	"errors"
	"fmt"
	"log"
	neturl "net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/gateways"
)

// askEvery is how often every contender is asked about every service.
const askEvery = cadence / 2

// What people write, and what one writes who has all these faults in mind. The
// last needs gpu.allocation in Prometheus, which the agents send.
const (
	avgPushed  = `avg by (k8s_namespace_name, service_name) (hw_gpu_utilization_ratio{hw_gpu_task="general"})`
	podsPushed = `avg by (k8s_namespace_name, service_name) (avg by (k8s_namespace_name, service_name, k8s_pod_name) (hw_gpu_utilization_ratio{hw_gpu_task="general"}))`
	podsPulled = `avg by (namespace, service) (avg by (namespace, service, pod) (DCGM_FI_DEV_GPU_UTIL)) / 100`

	byPod     = "k8s_namespace_name, service_name, k8s_pod_name"
	byService = "k8s_namespace_name, service_name"
)

var (
	// A pod is settled that was announced a while ago and is now; it is seen
	// when a value that can be one is fresh.
	settledPods   = fmt.Sprintf(`group by (%s) (gpu_allocation and gpu_allocation offset %s)`, byPod, settling)
	reportingPods = fmt.Sprintf(`avg by (%s) (hw_gpu_utilization_ratio{hw_gpu_task="general"} <= 1 and time() - timestamp(hw_gpu_utilization_ratio{hw_gpu_task="general"}) <= %g)`, byPod, staleness.Seconds())

	careful        = fmt.Sprintf(`avg by (%s) (%s and %s)`, byService, reportingPods, settledPods)
	carefulPartial = fmt.Sprintf(`count by (%[1]s) (%[2]s unless %[3]s) / count by (%[1]s) (%[2]s) > %[4]v`, byService, settledPods, reportingPods, partialAbove)
)

var correctnessColumns = []frame.Column{
	{Key: "summary", Title: "gpu_summary", Decimals: 1},
	{Key: "avg", Title: "avg, pushed", Decimals: 1},
	{Key: "pods", Title: "avg of pods, pushed", Decimals: 1},
	{Key: "pulled", Title: "avg of pods, scraped", Decimals: 1},
	{Key: "careful", Title: "avg with care, pushed", Decimals: 1},
}

var Entry = frame.Entry{
	Name:    "correctness",
	Title:   "Averages of services: who is right, and how late",
	Sources: []string{"processor/gpusummaryprocessor"},
	Text: fmt.Sprintf("A fleet of services with a utilization that is known at every moment, and faults that begin at known ones. Everything goes %d times faster than the defaults, processes and machine excepted: telemetry, scrapes and evaluations "+
		"every %v, staleness %v, warmup %v, `allocation_ttl` %v, Prometheus' look-back %v. Multiply by %d for the defaults; %v is one interval. "+
		"Agents push the same bytes (OTLP/HTTP) to otelcol-gpu, with a gpu_summary that expects the pods of `gpu.allocation`, and to a Prometheus server, which takes samples out of order; another Prometheus scrapes one exporter a pod at the same time. "+
		"Every contender is asked about every service each %v: gpu_summary's answer is the last that it sent, as old as a recording rule's would be; Prometheus' is that of an instant query.\n\n"+
		"**Right** is what is within %g points of the truth: the mean over the service's pods that exist, are settled (%v old) and can be read at that moment, a pod being the mean of its devices. Nothing is right where no pod can be read. "+
		"That is how gpu_summary defines an average; who wants a pod in it from its first moment finds the other answers right while new ones load their model. "+
		"Pods that fall silent do as the others of their service, and the load changes at that moment: the truth is the same with and without them, a value that is kept is not. "+
		"**Not right for** adds up wrong answers and none, from the fault on, in a phase of at least %v (a restart: %v). **Off by** is the mean error of the answers in the phase, none counted above 100 points. Partial is when more than %g%% of the settled pods are silent; who scrapes could ask `up` for that.\n\n"+
		"The pages have the service as a label of the pod. DCGM's blank value is passed on as it is; the receiver of otelcol-gpu's agents would have dropped it. `avg with care` was written with all these faults in mind, and needs the `gpu.allocation` of the agents; its partial is the last expression.\n\n"+
		"```\n# avg\n%s\n# avg of pods\n%s\n# avg of pods, scraped\n%s\n# avg with care\n%s\n%s\n```",
		hurry, cadence, staleness, settling, expiry, lookBehind, hurry, cadence, askEvery, 100*tolerance, settling, leastPhase, restartPhase, 100*partialAbove,
		avgPushed, podsPushed, podsPulled, careful, carefulPartial),
	Columns: correctnessColumns,
	All: func(ctx context.Context, w *frame.World) ([]frame.Named, error) {
		p, err := measureCorrectness(ctx, w)
		if err != nil {
			return nil, err
		}
		var contenders []string
		for _, c := range correctnessColumns {
			contenders = append(contenders, c.Key)
		}
		return p.rows(contenders, map[string]bool{"summary": true, "careful": true}), nil
	},
}

// cause is an error without the query, which is long.
func cause(err error) string {
	if of := (*neturl.Error)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return err.Error()
}

// contender answers for all services.
type contender struct {
	name string
	ask  func(context.Context, time.Time) (map[string]answer, error)
}

// stage is all that receives, and can be killed and started again.
type stage struct {
	w            *frame.World
	summaries    *summaries
	pages        *pages
	ours, pushed *receiver
	server       atomic.Pointer[string] // URL of the Prometheus that is pushed to
	scraper      atomic.Pointer[string] // and of the one that scrapes
	data         string                 // both keep theirs across restarts

	mu      sync.Mutex
	running []frame.Program
}

// start starts all at once, and returns when all are ready.
func (s *stage) start(ctx context.Context) error {
	starts := []func(context.Context) (frame.Program, error){s.startGateway, s.startServer, s.startScraper}
	errs := make([]error, len(starts))
	var all sync.WaitGroup
	for i, start := range starts {
		all.Go(func() {
			p, err := start(ctx)
			if errs[i] = err; err == nil {
				s.mu.Lock()
				s.running = append(s.running, p)
				s.mu.Unlock()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *stage) startGateway(ctx context.Context) (frame.Program, error) {
	var url string
	p, err := s.w.Collect(ctx, nil, func(ports collector.Ports) []string {
		url = fmt.Sprintf("http://%s:%d/v1/metrics", collector.Loopback, ports.OTLPHTTP)
		return []string{frame.Overlay(summaryGateway(s.summaries.Addr())), frame.Overlay(frame.Moved(ports, "receivers"))}
	})
	s.ours.at(url)
	return p, err
}

func (s *stage) startServer(ctx context.Context) (frame.Program, error) {
	p, url, err := s.w.StartPrometheus(ctx, m{
		"otlp":    m{"promote_resource_attributes": []string{"k8s.namespace.name", "k8s.pod.name", "service.name"}},
		"storage": m{"tsdb": m{"out_of_order_time_window": "30m"}},
	}, s.flags("pushed"))
	s.server.Store(&url)
	s.pushed.at(url + "/api/v1/otlp/v1/metrics")
	return p, err
}

func (s *stage) startScraper(ctx context.Context) (frame.Program, error) {
	var targets []m
	for _, path := range s.pages.paths {
		targets = append(targets, m{"targets": []string{s.pages.address}, "labels": m{"__metrics_path__": path, "instance": path}})
	}
	p, url, err := s.w.StartPrometheus(ctx, m{
		"global":         m{"scrape_interval": cadence.String(), "scrape_timeout": cadence.String()},
		"scrape_configs": []m{{"job_name": "dcgm", "honor_labels": true, "static_configs": targets}},
	}, s.flags("scraped"))
	s.scraper.Store(&url)
	return p, err
}

func (s *stage) flags(name string) func(string) []string {
	return func(string) []string {
		return []string{"--web.enable-otlp-receiver", "--storage.tsdb.path", filepath.Join(s.data, name), "--query.lookback-delta", lookBehind.String()}
	}
}

// kill ends all at once, without notice.
func (s *stage) kill() error {
	for _, p := range s.running {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			return err
		}
	}
	s.stop()
	return nil
}

func (s *stage) stop() {
	for _, p := range s.running {
		p.Stop()
	}
	s.running = nil
}

// summaryGateway is gpu_summary in a hurry, which sends what it reports to a sink.
func summaryGateway(to string) m {
	config := gateways.Pipelines(m{"gpu_summary": m{
		"expected_pods": "allocation", "interval": cadence.String(), "staleness": staleness.String(), "initial_interval": cadence.String(),
		"warmup": settling.String(), "allocation_ttl": expiry.String(), "reconnect_grace": "0s", // nothing was there before
	}}, []string{"gpu_summary"}, nil)
	config["exporters"] = m{"otlp_grpc": m{"endpoint": to, "tls": m{"insecure": true}, "compression": "none", "sending_queue": m{"enabled": false}}}
	config["service"].(m)["pipelines"].(m)["metrics"].(m)["exporters"] = []string{"otlp_grpc"}
	return config
}

// contenders are those that can be asked, by their columns.
func (s *stage) contenders() []contender {
	query := func(server *atomic.Pointer[string], expression, label string) func(context.Context, time.Time) (map[string]answer, error) {
		return func(ctx context.Context, at time.Time) (map[string]answer, error) {
			means, err := vector(ctx, *server.Load(), expression, at, label)
			out := map[string]answer{}
			for service, mean := range means {
				out[service] = answer{mean: mean, there: true}
			}
			return out, err
		}
	}
	withCare := query(&s.server, careful, "service_name")
	return []contender{
		{"summary", s.summaries.ask},
		{"avg", query(&s.server, avgPushed, "service_name")},
		{"pods", query(&s.server, podsPushed, "service_name")},
		{"pulled", query(&s.scraper, podsPulled, "service")},
		{"careful", func(ctx context.Context, at time.Time) (map[string]answer, error) {
			out, err := withCare(ctx, at)
			if err != nil {
				return nil, err
			}
			partial, err := vector(ctx, *s.server.Load(), carefulPartial, at, "service_name")
			for service := range partial {
				a := out[service]
				a.partial = true
				out[service] = a
			}
			return out, err
		}},
	}
}

// measureCorrectness runs the script once.
func measureCorrectness(ctx context.Context, w *frame.World) (_ *protocol, err error) {
	services, restart, end := script(max(w.Window/2, leastPhase))
	s := &stage{w: w, ours: newReceiver("otelcol-gpu"), pushed: newReceiver("Prometheus")}
	if s.summaries, err = newSummaries(); err != nil {
		return nil, err
	}
	defer s.summaries.Close()
	if s.data, err = w.Folder("correctness"); err != nil {
		return nil, err
	}
	clock := &runClock{} // begins when all are ready
	if s.pages, err = startPages(clock, services); err != nil {
		return nil, err
	}
	defer s.pages.close()
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return nil, err
	}

	playing, stop := context.WithCancel(ctx)
	begin := clock.start()
	agents := startAgents(playing, begin, services, []*receiver{s.ours, s.pushed})
	restarted := make(chan error, 1)
	go func() { restarted <- s.restart(playing, restart, agents) }()
	p, err := watchAnswers(ctx, begin, end, services, s.contenders())
	if err != nil {
		stop() // else the restart is over
	}
	again := <-restarted
	refused := agents.taken() // of what the end breaks off nothing is reported
	stop()
	agents.done.Wait()
	return p, errors.Join(err, again, refused, agents.punctual())
}

// restart kills all at a moment and starts it again.
func (s *stage) restart(ctx context.Context, after time.Duration, agents *agents) error {
	if err := frame.Sleep(ctx, time.Until(agents.begin.Add(after))); err != nil {
		return err
	}
	if err := agents.taken(); err != nil {
		return err
	}
	if err := s.kill(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	// What was refused until now is the restart's.
	if err := frame.Sleep(ctx, cadence); err != nil {
		return err
	}
	agents.forgive()
	return nil
}

// watchAnswers asks all contenders until the end, and judges.
func watchAnswers(ctx context.Context, begin time.Time, end time.Duration, services []*gpuService, contenders []contender) (*protocol, error) {
	p := newProtocol()
	given := map[string]int{}
	failures := map[string]string{}
	for {
		now := time.Since(begin)
		next := max(fleetSettled, now.Truncate(askEvery)+askEvery)
		if next >= end {
			break
		}
		if err := frame.Sleep(ctx, next-now); err != nil {
			return nil, err
		}
		at := time.Now()
		t := at.Sub(begin)
		answers := make([]map[string]answer, len(contenders))
		errs := make([]error, len(contenders))
		var asked sync.WaitGroup
		for i, c := range contenders {
			asked.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				answers[i], errs[i] = c.ask(ctx, at)
			})
		}
		asked.Wait()
		for i, c := range contenders {
			if errs[i] != nil { // that is no answer
				failures[c.name] = cause(errs[i])
			}
			for _, service := range services {
				if ph, ok := service.phaseAt(t); !ok || ph.pushed && c.name == "pulled" {
					continue
				}
				a := answers[i][service.name]
				if a.there {
					given[c.name]++
				}
				p.add(service, t, c.name, a)
			}
		}
	}
	for _, c := range contenders {
		if given[c.name] == 0 {
			return nil, fmt.Errorf("%s answered nothing: %s", c.name, failures[c.name])
		}
	}
	if len(failures) > 0 {
		log.Printf("correctness: questions that failed, the last of each (a restart has some): %v", failures)
	}
	return p, nil
}
