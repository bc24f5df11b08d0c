// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/kubeapi"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/exporters"
)

const (
	clusterName = "test-cluster"
	nodeName    = "gpu-node-a"
	// victim is the service on the node's first two GPUs, victimPod its pod.
	victim          = "llama"
	victimNamespace = "inference"
	victimPod       = "llama-6b8d5c9f7d-k2x9p"
)

// The memory that the chart gives their containers, in MiB.
const (
	agentMiB      = 512
	gatewayMiB    = 1280
	standaloneMiB = 768
)

// intervals are short, so that an attack takes seconds.
var intervals = m{"interval": "1s", "initial_interval": "1s", "warmup": "2s", "staleness": "10s"}

// cluster is one node's agent and the gateway, with applications switched on.
type cluster struct {
	*lab
	fleet          *gpusim.Fleet
	api            *kubeapi.API
	agent, gateway *process
	engines        engines
}

// newCluster starts agent and gateway, with engines that a tenant has on the
// node, and waits until the console shows the victim.
func (l *lab) newCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{lab: l, api: kubeapi.New(nodeName)}
	var server *exporters.Server
	var err error
	if c.fleet, server, err = l.fleet(); err != nil {
		return nil, err
	}
	if c.gateway, err = l.gateway(ctx, nil); err != nil {
		return nil, err
	}
	exporter, err := url.Parse(server.URL(nodeName))
	if err != nil {
		return nil, err
	}
	c.api.AddPod("gpu-operator", "exporter-x7k2p", m{"labels": m{"app": "nvidia-dcgm-exporter"}}, exporter.Hostname())
	c.api.AddPod(victimNamespace, victimPod, m{"labels": m{"app.kubernetes.io/name": victim}}, "10.0.0.1")
	c.api.AddPod(newcomer.Namespace, newcomer.Name, m{"labels": m{"app.kubernetes.io/name": "newcomer"}}, "10.0.0.2")
	if err := c.engines.add(l, c.api); err != nil {
		return nil, err
	}
	if c.agent, err = c.startAgent(ctx, "agent", exporter.Port(), local(c.gateway.ports.appsGRPC)); err != nil {
		return nil, err
	}
	return c, until(ctx, "the victim in the console", func() (bool, error) {
		s, err := c.gateway.service(ctx, victimNamespace, victim)
		return err == nil && s.Pods.Reporting == 1, err
	})
}

// newcomer is a pod that gets a GPU of the node later.
var newcomer = gpusim.Pod{
	Namespace: "newteam", Name: "newcomer-0", Container: "main", Labels: map[string]string{"app.kubernetes.io/name": "newcomer"},
	Devices: []string{"2"}, Load: gpusim.Inference,
}

// gateway starts config/gateway.yaml with applications and webhooks.
func (l *lab) gateway(ctx context.Context, more m) (*process, error) {
	p, err := freePorts()
	if err != nil {
		return nil, err
	}
	overlay := m{
		"receivers": m{
			"otlp":      m{"protocols": m{"grpc": m{"endpoint": local(p.grpc)}, "http": m{"endpoint": local(p.http)}}},
			"otlp/apps": m{"protocols": m{"grpc": m{"endpoint": local(p.appsGRPC)}}},
		},
		"processors": m{"gpu_summary": merge(m{"expected_pods": "seen", "storage": "file_storage/state"}, intervals)},
		"exporters":  m{"prometheus": m{"endpoint": local(p.prometheus)}, "prometheus/apps": m{"endpoint": local(p.appsPrometheus)}},
		"extensions": m{"gpu_store": m{"api": m{"endpoint": local(p.store)}}, "gpu_console": m{"endpoint": local(p.console)}},
	}
	for section, components := range more {
		into, _ := overlay[section].(m)
		overlay[section] = merge(into, components.(m))
	}
	configs := []string{"gateway.yaml", "gateway-applications.yaml"}
	env := []string{"K8S_CLUSTER_NAME=" + clusterName}
	if exporters, _ := more["exporters"].(m); exporters["webhook"] != nil {
		configs, env = append(configs, "webhooks.yaml"), append(env, "WEBHOOK_URL=https://example.com")
	}
	return l.run(ctx, "gateway", p, env, overlay, configs...)
}

// startAgent starts config/agent.yaml with applications and engines; they go to appsEndpoint.
func (c *cluster) startAgent(ctx context.Context, name, exporterPort, appsEndpoint string) (*process, error) {
	p, err := freePorts()
	if err != nil {
		return nil, err
	}
	apiURL, err := c.serve(c.api)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(c.dir, name+"-kubeconfig")
	if err := kubeapi.Kubeconfig(kubeconfig, apiURL); err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(exporterPort)
	if err != nil {
		return nil, err
	}
	return c.run(ctx, name, p, []string{
		"K8S_NODE_NAME=" + nodeName, "K8S_CLUSTER_NAME=" + clusterName, "K8S_AUTH_TYPE=kubeConfig", "KUBECONFIG=" + kubeconfig,
		"GATEWAY_ENDPOINT=" + local(c.gateway.ports.grpc), "GATEWAY_INSECURE=true", "APPS_ENDPOINT=" + appsEndpoint, "APPS_INSECURE=true",
		"INFERENCE_INTERVAL=1s",
	}, m{
		"receivers": m{
			"dcgm":           m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
			"gpu_allocation": m{"socket": filepath.Join(c.dir, "no-kubelet.sock")},
			"otlp":           m{"protocols": m{"grpc": m{"endpoint": local(p.grpc)}, "http": m{"endpoint": local(p.http)}}},
		},
	}, "agent.yaml", "applications.yaml", "inference.yaml")
}

// standalone starts config/standalone.yaml on the simulated node.
func (l *lab) standalone(ctx context.Context, more m, configs ...string) (*process, *gpusim.Fleet, error) {
	fleet, server, err := l.fleet()
	if err != nil {
		return nil, nil, err
	}
	p, err := freePorts()
	if err != nil {
		return nil, nil, err
	}
	overlay := m{
		"receivers": m{
			"dcgm":           m{"collection_interval": "1s"},
			"gpu_allocation": m{"socket": filepath.Join(l.dir, "no-kubelet.sock")},
			"otlp":           m{"protocols": m{"grpc": m{"endpoint": local(p.grpc)}, "http": m{"endpoint": local(p.http)}}},
		},
		"processors": m{"gpu_summary": intervals},
		"exporters":  m{"prometheus": m{"endpoint": local(p.prometheus)}, "prometheus/apps": m{"endpoint": local(p.appsPrometheus)}},
		"extensions": m{"gpu_store": m{"api": m{"endpoint": local(p.store)}}, "gpu_console": m{"endpoint": local(p.console)}},
	}
	for section, components := range more {
		into, _ := overlay[section].(m)
		overlay[section] = merge(into, components.(m))
	}
	s, err := l.run(ctx, "standalone", p, []string{"DCGM_EXPORTER_ENDPOINT=" + server.URL(nodeName), "WEBHOOK_URL=https://example.com"},
		overlay, append([]string{"standalone.yaml"}, configs...)...)
	if err != nil {
		return nil, nil, err
	}
	return s, fleet, until(ctx, "the victim in the console", func() (bool, error) {
		found, err := s.service(ctx, victimNamespace, victim)
		return err == nil && found.Pods.Reporting == 1, err
	})
}

func merge(into, more m) m {
	out := m{}
	for _, from := range []m{into, more} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}

// service is what the console shows of a service.
type service struct {
	Service   string   `json:"service"`
	Namespace string   `json:"namespace"`
	Attention []string `json:"attention"`
	Partial   *bool    `json:"partial"`
	Pods      struct {
		Expected, Reporting, Missing int
	} `json:"pods"`
}

func (p *process) services(ctx context.Context) ([]service, error) {
	var answer struct {
		Services []service `json:"services"`
	}
	err := getJSON(ctx, at(p.ports.console, "/api/v1/services"), &answer)
	return answer.Services, err
}

func (p *process) service(ctx context.Context, namespace, name string) (service, error) {
	all, err := p.services(ctx)
	for _, s := range all {
		if s.Namespace == namespace && s.Service == name {
			return s, nil
		}
	}
	return service{}, errors.Join(err, fmt.Errorf("the console has no service %s in %s", name, namespace))
}

// blind reports what an attack on the victim's figures achieved: that no fresh
// value reaches the console and Prometheus for ten seconds.
func (p *process) blind(ctx context.Context) []string {
	deadline := time.Now().Add(10 * time.Second)
	for {
		var achieved []string
		if s, err := p.service(ctx, victimNamespace, victim); err != nil {
			achieved = append(achieved, err.Error())
		} else if s.Pods.Reporting != 1 || s.Pods.Missing != 0 || s.Partial == nil || *s.Partial || len(s.Attention) > 0 {
			achieved = append(achieved, fmt.Sprintf("the console shows service %s as %+v", victim, s))
		}
		// Fresh within two intervals, in the store that the console reads.
		fresh, err := p.query(ctx, `time() - timestamp(hw_gpu_utilization_ratio{k8s_pod_name="`+victimPod+`"}) < 5`)
		if err != nil || len(fresh) == 0 {
			achieved = append(achieved, fmt.Sprintf("the store has no fresh utilization of pod %s (%v)", victimPod, err))
		}
		if len(achieved) == 0 || time.Now().After(deadline) {
			return achieved
		}
		select {
		case <-ctx.Done():
			return append(achieved, ctx.Err().Error())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
