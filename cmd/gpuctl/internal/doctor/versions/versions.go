// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package versions is the probe of the versions of the parts of an installation.
package versions

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/telemetry"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// ownPods are the label selector of everything that the chart and
// config/kubernetes install.
const ownPods = "app.kubernetes.io/name=otelcol-gpu"

// Probe compares the parts of an installation with each other.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	results := []probe.Result{probe.New("gpuctl", probe.OK, env.Version, "")}
	if address := env.Config.OwnAddress(); address != "" && env.Role == "" {
		if own, _, err := telemetry.Ask(ctx, address); err == nil && own.Version() != "" {
			results = append(results, sameVersion("collector", own.Version(), env.Version))
		}
	}
	if env.Role == "" {
		results = append(results, gateways(ctx, env)...)
	}
	return append(results, images(ctx, env.Kube)...)
}

func sameVersion(what, theirs, ours string) probe.Result {
	r := probe.New(what, probe.OK, theirs, "")
	if strings.TrimPrefix(theirs, "v") != strings.TrimPrefix(ours, "v") {
		r.Status, r.Remedy = probe.Warn, "gpuctl is "+ours+": use the one of the collector's own version; its results may be wrong otherwise"
	}
	return r
}

// gateways looks at the clock and the version of wherever the collector sends
// to, on the ports that config/gateway.yaml has. They need not be open.
func gateways(ctx context.Context, env probe.Env) []probe.Result {
	hosts := map[string]bool{}
	for _, c := range env.Config.Of("exporters", "otlp", "otlp_grpc") {
		var cfg config.OTLPExporter
		if c.Read(&cfg) != nil {
			continue
		}
		if u, err := cfg.Address(false); err == nil {
			hosts[u.Hostname()] = true
		}
	}
	names := slices.Sorted(maps.Keys(hosts))
	checks := make([]probe.Check, len(names))
	for i, host := range names {
		checks[i] = probe.Check{Name: "versions", Run: func(ctx context.Context) []probe.Result { return gatewayAt(ctx, env, host) }}
	}
	return probe.Run(ctx, checks, env.Timeout, env.Progress)
}

func gatewayAt(ctx context.Context, env probe.Env, host string) []probe.Result {
	// A firewall may drop what is sent there: that must not cost all the time.
	attempt := func(do func(context.Context) []probe.Result) []probe.Result {
		ctx, cancel := context.WithTimeout(ctx, env.Timeout/4)
		defer cancel()
		return do(ctx)
	}
	results := attempt(func(ctx context.Context) []probe.Result {
		own, a, err := telemetry.Ask(ctx, net.JoinHostPort(host, "8888"))
		if err != nil {
			return nil
		}
		return append([]probe.Result{sameVersion("gateway at "+host, own.Version(), env.Version)}, probe.Clock(host, a)...)
	})
	if results == nil {
		results = attempt(func(ctx context.Context) []probe.Result {
			// There is nothing at /, and that has a Date too.
			a, err := web.Get(ctx, web.Direct(nil), "http://"+net.JoinHostPort(host, "9464")+"/", nil)
			if err != nil {
				return nil
			}
			return probe.Clock(host, a)
		})
	}
	if results == nil {
		return []probe.Result{probe.New("gateway at "+host, probe.Skipped, "its version and clock are not seen from here (ports 8888 and 9464)", "")}
	}
	return results
}

// images compares the images of the installation's pods.
func images(ctx context.Context, api *kube.Client) []probe.Result {
	if api.Unused != "" {
		return nil
	}
	r := probe.Result{Subject: "pods", Status: probe.Skipped}
	pods, err := api.Pods(ctx, metav1.NamespaceAll, metav1.ListOptions{LabelSelector: ownPods, Limit: kube.MaxPods})
	if err != nil {
		r.Seen = "cannot be listed: " + kube.Why(err)
		return []probe.Result{r}
	}
	images, parts := map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		component := p.Labels["app.kubernetes.io/component"]
		for _, c := range p.Spec.Containers {
			if strings.Contains(c.Image, "otelcol-gpu") {
				tag := kube.TagOf(c.Image)
				images[tag] = true
				parts[component+" "+tag] = true
			}
		}
	}
	if len(images) == 0 {
		r.Seen = "none with the label " + ownPods
		return []probe.Result{r}
	}
	r.Status, r.Seen = probe.OK, strings.Join(slices.Sorted(maps.Keys(parts)), ", ")
	if len(images) > 1 {
		r.Status, r.Remedy = probe.Warn, "agents and gateway are of different versions: wait for the upgrade (kubectl rollout status), or finish it; the gateway first"
	}
	return []probe.Result{r}
}
