// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what is wrong with an installation of otelcol-gpu and what
// to do. It only looks: it sends no telemetry and no event. Each probe is a package.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/collector"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/console"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/exporter"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/gateway"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kubelet"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kubernetes"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/slurm"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/state"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/telemetry"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/versions"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

type (
	// Result is one thing that was looked at.
	Result = probe.Result
	// Status is how something was found.
	Status = probe.Status
)

const (
	OK      = probe.OK
	Warn    = probe.Warn
	Fail    = probe.Fail
	Skipped = probe.Skipped
)

const (
	configuration = "configuration"
	maxSeen       = 2000 // bytes
)

// probes in the order of their results.
var probes = []struct {
	name string
	run  probe.Func
	// cluster: it makes sense where there is only a cluster to ask.
	cluster bool
}{
	{"exporter", exporter.Probe, false},
	{"nvml", nvml.Probe, false},
	{"kubelet", kubelet.Probe, false},
	{"slurm", slurm.Probe, false},
	{"kubernetes", kubernetes.Probe, true},
	{"rbac", kubernetes.Rights, true},
	{"collector", collector.Health, false},
	{"telemetry", telemetry.Probe, false},
	{"otlp", collector.Listeners, false},
	{"gateway", gateway.Probe, false},
	{"console", console.Probe, false},
	{"state", state.Probe, false},
	{"webhook", webhook.Probe, false},
	{"versions", versions.Probe, true},
}

// Names are the checks, in the order of their results.
var Names = names()

func names() []string {
	all := []string{configuration}
	for _, p := range probes {
		all = append(all, p.name)
	}
	return all
}

// Options choose what to look at. The zero values of the strings and lists find it
// out by themselves.
type Options struct {
	// Configs are the collector's configurations, as its own --config takes them.
	Configs []string
	// Running is how many collectors run here. Of more than one none is meant
	// without Configs.
	Running int
	// Exporters are URLs that are looked at instead of the configured ones.
	Exporters []string
	// Role is agent or gateway: which rights are checked where there is no
	// configuration.
	Role string
	// As is the user to check the rights of, instead of one's own.
	As string
	// Token is for the console.
	Token string
	// Only are the names of the checks to make.
	Only []string
	// Timeout of each check.
	Timeout time.Duration
	// Watch is the time between two readings of what must move. 0: one reading.
	Watch time.Duration
	// Version of this program.
	Version string
	// Progress, if set, is called as the work goes on: done of all that is known to be
	// needed. Calls do not overlap.
	Progress func(done, all int)

	folder string // of the usual configurations
}

// onlyCluster is whether there is neither a configuration nor a collector here, only a
// cluster to ask about rights.
func (o *Options) onlyCluster() bool { return len(o.Configs) == 0 && o.Role != "" }

// wants is whether a check is to be made.
func (o *Options) wants(name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }

func (o *Options) validate() error {
	for _, name := range o.Only {
		if !slices.Contains(Names, name) {
			return fmt.Errorf("there is no check %q: use %s", safetext.Strip(name, 40), strings.Join(Names, ", "))
		}
	}
	if o.Role != "" && o.Role != config.RoleAgent && o.Role != config.RoleGateway {
		return errors.New("--role: use agent or gateway")
	}
	for _, e := range o.Exporters {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("--exporter: one is no address as in http://localhost:9400/metrics")
		}
	}
	return nil
}

// Run makes the checks that are wanted, or all. Its error is of the options; what
// is wrong with the installation is in the results.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	env, configured := examine(ctx, o)
	var results []Result
	if o.wants(configuration) || configured.Status != OK {
		results = append(results, configured)
	}
	var checks []probe.Check
	for _, p := range probes {
		if o.wants(p.name) && (p.cluster || !o.onlyCluster()) {
			checks = append(checks, probe.Check{Name: p.name, Run: func(ctx context.Context) []Result { return p.run(ctx, env) }})
		}
	}
	defer env.Progress.Stop()
	return clean(append(results, probe.Run(ctx, checks, o.Timeout+o.Watch, env.Progress)...)), nil
}

// examine finds out what there is to look at.
func examine(ctx context.Context, o Options) (probe.Env, Result) {
	if o.folder == "" {
		o.folder = config.UsualFolder
	}
	conf, result := configure(ctx, o)
	result.Check = configuration
	env := probe.Env{
		Config: conf, Kube: kube.New(conf, o.As, o.onlyCluster()), Exporters: o.Exporters, Token: o.Token, Version: o.Version,
		Timeout: o.Timeout, Watch: o.Watch, Now: time.Now(), Progress: probe.NewProgress(o.Progress),
	}
	if o.onlyCluster() {
		env.Role = o.Role
	}
	return env, result
}

// Worst is fail where something fails.
func Worst(results []Result) Status {
	worst := OK
	for _, r := range results {
		if r.Status == Fail || r.Status == Warn && worst == OK {
			worst = r.Status
		}
	}
	return worst
}

// clean makes what came from outside fit to be shown.
func clean(results []Result) []Result {
	for i := range results {
		r := &results[i]
		r.Subject, r.Seen = safetext.Strip(r.Subject, 253), safetext.Strip(r.Seen, maxSeen)
		lines := strings.Split(r.Remedy, "\n")
		for j := range lines {
			lines[j] = safetext.Strip(lines[j], maxSeen)
		}
		r.Remedy = strings.Join(lines, "\n")
	}
	return results
}
