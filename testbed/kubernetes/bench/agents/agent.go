// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package agents measures what may run on every node, and scraping many exporters from
// one place.
package agents

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
)

type m = map[string]any

// keeps is the row of who sends nothing.
const keeps = "standalone.yaml"

// At compares what may be on every node, at an interval, over a window; 0 is
// the usual one.
func At(interval, window time.Duration) frame.Entry {
	return frame.Entry{
		Window: window, Together: true, Turns: 2,
		Name:    "agent-" + interval.String(),
		Sources: append([]string{"config/agent.yaml"}, frame.Standalone...),
		Title:   fmt.Sprintf("Agent on one node, every %v", interval),
		Text: "One node of 8 GPUs, each held by a pod, with every field on the exporter's page, in a real Kubernetes control plane. The agent is `config/agent.yaml` with `GOGC=50`, as in the DaemonSet: " +
			"kubelet, gpu_pod, k8s_attributes and device events included. It and `config/standalone.yaml` have `footprint`, which gives memory back 30 s after the start and then every five minutes; " +
			"what is used again comes back meanwhile. Stock Collector and Prometheus have neither that nor `GOGC`: beside them the row without both is the like. The stock Collector is the same binary with prometheusreceiver alone. All of them run at the same time. Everybody sends to a server that throws it away; " +
			"`config/standalone.yaml` keeps it, and its page is not used. Sent: what arrived there, headers included.",
		Columns: []frame.Column{
			{Key: "rss", Title: "resident, MiB", Decimals: 1, Ratio: true},
			{Key: "most", Title: "resident at most", Decimals: 1, Goal: "60"},
			{Key: "anon", Title: "anonymous, MiB", Decimals: 1, Ratio: true, Goal: "30"},
			{Key: "core", Title: "CPU, % of a core", Decimals: 2, Ratio: true, Goal: "0.2 at 15s"},
			{Key: "sent", Title: "sent, KiB a collection", Decimals: 1, Ratio: true},
			{Key: "samples", Title: "samples on the page", Decimals: 0},
		},
		Rows: func(*frame.World) []frame.Row {
			at := func(name string, start func(context.Context, *frame.World, *gpuNode, *frame.Sink) (frame.Program, error)) frame.Row {
				return frame.Row{Name: name, Measure: func(ctx context.Context, w *frame.World) (frame.Figures, error) {
					return measureAgent(ctx, w, interval, name != keeps, start)
				}}
			}
			return []frame.Row{
				at("stock Collector", func(ctx context.Context, w *frame.World, n *gpuNode, s *frame.Sink) (frame.Program, error) {
					return w.Collect(ctx, nil, func(p collector.Ports) []string {
						sender := m{"otlp_grpc": m{"endpoint": s.OTLP, "tls": m{"insecure": true}}}
						return []string{frame.Overlay(frame.Stock([]string{n.target}, interval, "otlp_grpc", sender)), frame.Overlay(frame.Moved(p))}
					})
				}),
				at("Prometheus agent", func(ctx context.Context, w *frame.World, n *gpuNode, s *frame.Sink) (frame.Program, error) {
					return w.PrometheusAgent(ctx, []string{n.target}, interval, s)
				}),
				at("agent.yaml", func(ctx context.Context, w *frame.World, n *gpuNode, s *frame.Sink) (frame.Program, error) {
					return startAgent(ctx, w, n, s, interval, m{}, "GOGC=50")
				}),
				at("agent.yaml, no footprint, GOGC=100", func(ctx context.Context, w *frame.World, n *gpuNode, s *frame.Sink) (frame.Program, error) {
					return startAgent(ctx, w, n, s, interval, m{"service": m{"extensions": []string{"health_check", "file_storage/state"}}}, "GOGC=100")
				}),
				at(keeps, func(ctx context.Context, w *frame.World, n *gpuNode, _ *frame.Sink) (frame.Program, error) {
					return w.Collect(ctx, []string{"DCGM_EXPORTER_ENDPOINT=http://" + n.target + "/metrics"}, func(p collector.Ports) []string {
						return []string{w.Config("standalone.yaml"), frame.Overlay(p.Overlay()), frame.Overlay(m{"receivers": m{"dcgm": m{"collection_interval": interval.String()}}})}
					})
				}),
			}
		},
	}
}

func startAgent(ctx context.Context, w *frame.World, n *gpuNode, s *frame.Sink, interval time.Duration, more m, env ...string) (frame.Program, error) {
	return w.Collect(ctx, append([]string{
		"K8S_NODE_NAME=" + n.Name(), "K8S_CLUSTER_NAME=bench", "GATEWAY_ENDPOINT=" + s.OTLP, "GATEWAY_INSECURE=true",
		"K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + n.kubeconfig,
	}, env...), func(p collector.Ports) []string {
		top := frame.Moved(p, "receivers")
		top["receivers"].(m)["dcgm"] = m{"kubernetes": nil, "endpoints": []string{"http://" + n.target + "/metrics"}, "collection_interval": interval.String()}
		top["receivers"].(m)["gpu_allocation"] = m{"socket": n.Socket(), "collection_interval": interval.String()}
		return []string{w.Config("agent.yaml"), frame.Overlay(top), frame.Overlay(more)}
	})
}

func measureAgent(ctx context.Context, w *frame.World, interval time.Duration, sends bool, start func(context.Context, *frame.World, *gpuNode, *frame.Sink) (frame.Program, error)) (frame.Figures, error) {
	n, err := nodes.get(ctx, w)
	if err != nil {
		return nil, err
	}
	s, err := frame.NewSink()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := start(ctx, w, n, s)
	if err != nil {
		return nil, err
	}
	used, bytes, err := w.Measure(ctx, p, s.Bytes.Load)
	if err != nil {
		return nil, err
	}
	f := frame.Figures{"rss": used.RSS, "most": used.Most, "anon": used.Anon, "core": 100 * used.Core(), "samples": float64(n.samples)}
	if sends {
		if err := s.Reached(); err != nil {
			return nil, err
		}
		if bytes == 0 {
			return nil, errors.New("nothing arrived in that time")
		}
		f["sent"] = bytes / 1024 * interval.Seconds() / used.Took.Seconds()
	}
	return f, nil
}

// gpuNode is the node that agents run on.
type gpuNode struct {
	*node.Node
	target     string // of its exporter, host:port
	kubeconfig string
	samples    int // on a page
}

// nodes has the node of all entries: the first of them starts it.
var nodes shared

type shared struct {
	mu   sync.Mutex
	node *gpuNode
}

// get starts a control plane with that node, once.
func (s *shared) get(ctx context.Context, w *frame.World) (_ *gpuNode, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node != nil {
		return s.node, nil
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: w.Work})
	if err != nil {
		return nil, fmt.Errorf("%w (make kubernetes builds its programs)", err)
	}
	w.OnClose(func() { _ = c.Stop() })
	started, err := node.Start(ctx, c, node.Options{Name: "node-0", Model: "H100", GPUs: 8, Fields: "all"})
	if err != nil {
		return nil, err
	}
	w.OnClose(started.Stop)
	labels, replicas := map[string]string{"app": "chat"}, int32(8)
	_, err = c.Client().AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: "example.com/chat",
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(1, resource.DecimalSI)}},
			}}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	err = c.Wait(wait, "8 devices held", func(context.Context) error {
		if held := len(started.Truth().Owners); held != 8 {
			return fmt.Errorf("%d devices are held", held)
		}
		return started.Err()
	})
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(started.ExporterURL())
	if err != nil {
		return nil, err
	}
	samples, err := countSamples(started.ExporterURL())
	if err != nil {
		return nil, err
	}
	s.node = &gpuNode{Node: started, target: address.Host, kubeconfig: c.AdminKubeconfig(), samples: samples}
	return s.node, nil
}
