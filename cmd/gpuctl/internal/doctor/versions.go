// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// ownPods are the label selector of everything that the chart and
// config/kubernetes install.
const ownPods = "app.kubernetes.io/name=otelcol-gpu"

// checkVersions compares the parts of an installation with each other.
func (in *installation) checkVersions(ctx context.Context) []Result {
	results := []Result{{"versions", "gpuctl", OK, in.Version, ""}}
	if address := in.ownAddress(); address != "" && !in.remote {
		if own, _, err := askOwn(ctx, address); err == nil && own.version() != "" {
			results = append(results, sameVersion("collector", own.version(), in.Version))
		}
	}
	if !in.remote {
		results = append(results, in.gateways(ctx)...)
	}
	return append(results, in.images(ctx)...)
}

func sameVersion(what, theirs, ours string) Result {
	r := Result{"versions", what, OK, theirs, ""}
	if strings.TrimPrefix(theirs, "v") != strings.TrimPrefix(ours, "v") {
		r.Status, r.Remedy = Warn, "gpuctl is "+ours+": use the one of the collector's own version; what it says may be wrong otherwise"
	}
	return r
}

// gateways looks at the clock and the version of wherever the collector sends
// to, on the ports that config/gateway.yaml has. They need not be open.
func (in *installation) gateways(ctx context.Context) []Result {
	hosts := map[string]bool{}
	for _, c := range in.of("exporters", "otlp", "otlp_grpc") {
		var cfg otlpExporter
		if c.read(&cfg) != nil {
			continue
		}
		if u, err := addressOf(cfg, false); err == nil {
			hosts[u.Hostname()] = true
		}
	}
	names := slices.Sorted(maps.Keys(hosts))
	each := make([][]Result, len(names))
	var wg sync.WaitGroup
	for i, host := range names {
		wg.Go(func() {
			one := check{"versions", func(ctx context.Context) []Result { return in.gatewayAt(ctx, host) }}
			each[i] = bounded(ctx, one, in.Timeout)
		})
	}
	wg.Wait()
	return slices.Concat(each...)
}

func (in *installation) gatewayAt(ctx context.Context, host string) []Result {
	// A firewall may drop what is sent there: that must not cost all the time.
	attempt := func(do func(context.Context) []Result) []Result {
		ctx, cancel := context.WithTimeout(ctx, in.Timeout/4)
		defer cancel()
		return do(ctx)
	}
	results := attempt(func(ctx context.Context) []Result {
		own, a, err := askOwn(ctx, net.JoinHostPort(host, "8888"))
		if err != nil {
			return nil
		}
		return append([]Result{sameVersion("gateway at "+host, own.version(), in.Version)}, clock("versions", host, a.header, a.asked, a.answered)...)
	})
	if results == nil {
		results = attempt(func(ctx context.Context) []Result {
			// There is nothing at /, and that has a Date too.
			a, err := get(ctx, direct(nil), "http://"+net.JoinHostPort(host, "9464")+"/", nil)
			if err != nil {
				return nil
			}
			return clock("versions", host, a.header, a.asked, a.answered)
		})
	}
	if results == nil {
		return []Result{{"versions", "gateway at " + host, Skipped, "its version and clock are not seen from here (ports 8888 and 9464)", ""}}
	}
	return results
}

// images compares the images of the installation's pods.
func (in *installation) images(ctx context.Context) []Result {
	if in.kube.connect == nil {
		return nil
	}
	r := Result{Check: "versions", Subject: "pods", Status: Skipped}
	var list podList
	if _, err := in.kube.ask(ctx, "/api/v1/pods", url.Values{"labelSelector": {ownPods}, "limit": {maxPods}}, nil, &list); err != nil {
		r.Seen = "cannot be listed: " + why(err)
		return []Result{r}
	}
	images, parts := map[string]bool{}, map[string]bool{}
	for _, p := range list.Items {
		component := p.Metadata.Labels["app.kubernetes.io/component"]
		for _, c := range p.Spec.Containers {
			if strings.Contains(c.Image, "otelcol-gpu") {
				tag := tagOf(c.Image)
				images[tag] = true
				parts[component+" "+tag] = true
			}
		}
	}
	if len(images) == 0 {
		r.Seen = "none with the label " + ownPods
		return []Result{r}
	}
	r.Status, r.Seen = OK, strings.Join(slices.Sorted(maps.Keys(parts)), ", ")
	if len(images) > 1 {
		r.Status, r.Remedy = Warn, "agents and gateway are of different versions: wait for the upgrade (kubectl rollout status), or finish it; the gateway first"
	}
	return []Result{r}
}
