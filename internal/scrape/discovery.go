// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	promconfig "github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
)

// discoverer finds exporters' pods with Prometheus' Kubernetes discovery.
type discoverer struct {
	inner discovery.Discoverer
	job   *promconfig.ScrapeConfig
	found func([]location)

	pods map[string][]location // by targetgroup.Group.Source, one a pod
}

func newDiscoverer(job *promconfig.ScrapeConfig, logger *zap.Logger, found func([]location)) (*discoverer, error) {
	d := &discoverer{job: job, found: found, pods: map[string][]location{}}
	for _, sd := range job.ServiceDiscoveryConfigs {
		cfg, ok := sd.(*kubernetes.SDConfig)
		if !ok {
			continue
		}
		var err error
		d.inner, err = cfg.NewDiscoverer(discovery.DiscovererOptions{
			Logger: slog.New(zapslog.NewHandler(logger.Core())),
			// Its counters of API calls are registered nowhere.
			Metrics: cfg.NewDiscovererMetrics(prometheus.NewRegistry(), nil),
			SetName: job.JobName,
		})
		if err != nil {
			return nil, fmt.Errorf("kubernetes: %w: run it in a pod with a service account, or set kubernetes::kubeconfig_file", err)
		}
	}
	return d, nil
}

// run calls found at every change until ctx ends.
func (d *discoverer) run(ctx context.Context) {
	groups := make(chan []*targetgroup.Group)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.inner.Run(ctx, groups)
	}()
	for {
		select {
		case changed := <-groups:
			d.change(changed)
		case <-done:
			return
		}
	}
}

// change takes what is new about some pods.
func (d *discoverer) change(groups []*targetgroup.Group) {
	for _, g := range groups {
		if g == nil {
			continue
		}
		if locations := d.locate(g); len(locations) > 0 {
			d.pods[g.Source] = locations
		} else {
			delete(d.pods, g.Source)
		}
	}
	var all []location
	for _, locations := range d.pods {
		all = append(all, locations...)
	}
	// While one pod takes another's place both can have the node's address: the
	// two cannot be distinguished, and must not alternate.
	slices.SortFunc(all, func(a, b location) int {
		return cmp.Or(strings.Compare(a.url, b.url), strings.Compare(a.exporter.Pod, b.exporter.Pod))
	})
	d.found(all)
}

// locate finds the exporters among the containers and ports of a pod.
func (d *discoverer) locate(g *targetgroup.Group) []location {
	var found []location
	for _, t := range g.Targets {
		b := labels.NewBuilder(labels.EmptyLabels())
		for _, set := range [...]model.LabelSet{g.Labels, t} { // a target's own labels win
			for name, v := range set {
				b.Set(string(name), string(v))
			}
		}
		if !relabel.ProcessBuilder(b, d.job.RelabelConfigs...) || b.Get(model.AddressLabel) == "" {
			continue
		}
		at := locate(&url.URL{
			Scheme: d.job.Scheme, Host: b.Get(model.AddressLabel),
			Path: d.job.MetricsPath, RawQuery: d.job.Params.Encode(),
		}, d.job.JobName)
		at.exporter.Node = b.Get("__meta_kubernetes_pod_node_name")
		at.exporter.Pod = b.Get("__meta_kubernetes_pod_name")
		found = append(found, at)
	}
	return found
}
