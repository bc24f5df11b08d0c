// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
)

// maxExporters is how many exporters are looked at.
const maxExporters = 64

// dcgmConfig is what matters here of a dcgm receiver's configuration.
type dcgmConfig struct {
	Endpoints  []string        `mapstructure:"endpoints"`
	Kubernetes *dcgmKubernetes `mapstructure:"kubernetes"`
	Scrape     scrapeConfig    `mapstructure:"scrape"`
}

// exporter is one to look at.
type exporter struct {
	url     string
	version string // of its image, where discovery knows it
	client  *http.Client
}

func (in *installation) dcgm() []dcgmConfig {
	if in.configuration == nil {
		return nil
	}
	var all []dcgmConfig
	for _, c := range in.of("receivers", "dcgm") {
		var cfg dcgmConfig
		if c.read(&cfg) == nil {
			all = append(all, cfg)
		}
	}
	return all
}

func (in *installation) checkExporters(ctx context.Context) []Result {
	exporters, results := in.exporters(ctx)
	if len(exporters) > maxExporters {
		results = append(results, Result{"exporter", "", Skipped, fmt.Sprintf("%d of %d exporters are not looked at", len(exporters)-maxExporters, len(exporters)), ""})
		exporters = exporters[:maxExporters]
	}
	each := make([][]Result, len(exporters))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, e := range exporters {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			// A goroutine of its own: a panic in it would not be caught above.
			each[i] = bounded(ctx, check{"exporter", func(ctx context.Context) []Result { return in.checkExporter(ctx, e) }}, in.Timeout+in.Watch)
		})
	}
	wg.Wait()
	return append(slices.Concat(each...), results...)
}

// exporters are those to look at, and what is to be said before.
func (in *installation) exporters(ctx context.Context) ([]exporter, []Result) {
	var all []exporter
	for _, e := range in.Exporters {
		all = append(all, exporter{url: e, client: direct(nil)})
	}
	if len(all) > 0 {
		return all, nil
	}
	receivers := in.dcgm()
	if len(receivers) == 0 {
		return nil, []Result{{"exporter", "", Skipped, "the configuration has no dcgm receiver in a pipeline", ""}}
	}
	var results []Result
	for _, d := range receivers {
		client, err := d.Scrape.client()
		if err != nil {
			results = append(results, Result{"exporter", "scrape", Fail, err.Error(), "check dcgm::scrape, and that its files are mounted"})
			continue
		}
		for _, e := range d.Endpoints {
			all = append(all, exporter{url: e, client: client})
		}
		if d.Kubernetes != nil {
			found, r := in.discover(ctx, d.Kubernetes, client)
			all, results = append(all, found...), append(results, r...)
		}
	}
	return all, results
}

const remedyOfLines = "see which field prints it; one with a text as its value: in the exporter's counters file type it label (STRING) or take it out (BINARY)"

func (in *installation) checkExporter(ctx context.Context, e exporter) []Result {
	host := hostOf(e.url)
	page, a, r := in.readPage(ctx, e)
	if page == nil {
		return append([]Result{r}, in.clockOf(host, a)...)
	}
	results := []Result{in.describe(host, e, page)}
	if page.Refused > 0 {
		results = append(results, Result{"exporter", host, Warn, fmt.Sprintf("%d lines of the page are no samples; of the first: %s", page.Refused, page.Cause), remedyOfLines})
	}
	results = append(results, in.clockOf(host, a)...)
	results = append(results, lacks(host, page)...)
	results = append(results, in.holders(host, page)...)
	if in.Watch > 0 {
		results = append(results, in.watch(ctx, host, e, page)...)
	}
	return results
}

func (in *installation) clockOf(host string, a *answer) []Result {
	if a == nil {
		return nil
	}
	return clock("exporter", host, a.header, a.asked, a.answered)
}

// readPage reads the page, or says why not.
func (in *installation) readPage(ctx context.Context, e exporter) (*exporterpage.Page, *answer, Result) {
	host := hostOf(e.url)
	failed := func(seen, remedy string) Result { return Result{"exporter", host, Fail, seen, remedy} }
	a, err := get(ctx, e.client, e.url, http.Header{"Accept": {"text/plain;version=0.0.4"}})
	switch {
	case err != nil:
		return nil, nil, failed(why(err), "check that dcgm-exporter runs and that this is its address; a NetworkPolicy may stand between")
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return nil, a, failed(fmt.Sprintf("it answers %d", a.status), "give it what it asks for: dcgm::scrape::basic_auth or dcgm::scrape::authorization")
	case a.status != http.StatusOK:
		return nil, a, failed(fmt.Sprintf("it answers %d", a.status), "check the path, usually /metrics; dcgm-exporter answers 500 when one entity fails: look at its log")
	}
	page, err := exporterpage.Read(a.body)
	if err != nil {
		remedy := remedyOfLines
		if strings.HasPrefix(strings.TrimSpace(string(a.body)), "<") {
			remedy = "the address answers HTML: use the exporter's /metrics"
		}
		return nil, a, failed(err.Error(), remedy)
	}
	switch {
	case page.Rows == 0:
		return nil, a, failed("the page is empty", "look at the exporter's log: it has no device, or its counters file names no field that the device has")
	case page.Known == 0 || page.Devices == 0:
		return nil, a, failed(fmt.Sprintf("%d rows, and none of a GPU", page.Rows), "this is no dcgm-exporter, or its counters file names no field of a device: check the address, and the exporter's log")
	}
	return page, a, Result{}
}

func (in *installation) describe(host string, e exporter, page *exporterpage.Page) Result {
	parts := []string{fmt.Sprintf("%d GPUs", page.Devices)}
	if page.Devices == 1 {
		parts[0] = "1 GPU"
	}
	if len(page.Models) > 0 {
		parts[0] += " (" + strings.Join(page.Models, ", ") + ")"
	}
	if len(page.Drivers) > 0 {
		parts = append(parts, "driver "+strings.Join(page.Drivers, ", "))
	}
	version := "dcgm-exporter " + e.version
	if e.version == "" {
		version = "by its labels of dcgm-exporter " + page.Version()
	}
	parts = append(parts, version)
	return Result{"exporter", host, OK, strings.Join(append(parts, fmt.Sprintf("%d rows", page.Rows)), ", "), ""}
}

// lacks says which fields are missing, and for what.
func lacks(host string, page *exporterpage.Page) []Result {
	var absent, blank, lines []string
	for _, l := range page.Lacks() {
		text := l.Field + " (" + strings.Join(l.For, ", ") + ")"
		if l.Blank {
			blank = append(blank, text)
			continue
		}
		absent, lines = append(absent, text), append(lines, l.Line)
	}
	var results []Result
	if len(absent) > 0 {
		results = append(results, Result{
			"exporter", "fields of " + host, Warn, "not on the page: " + strings.Join(absent, "; "),
			"add these lines to the exporter's counters file (--collectors, DCGM_EXPORTER_COLLECTORS) and restart it; where a line is there already, the board gives no value; DCGM_FI_PROF_* need a data-centre GPU and the capability SYS_ADMIN:\n" + strings.Join(lines, "\n"),
		})
	}
	if len(blank) > 0 {
		results = append(results, Result{
			"exporter", "fields of " + host, Warn, "without a value: " + strings.Join(blank, "; "),
			"the board or its driver gives none, and these stay empty; for DCGM_FI_PROF_* end other profilers (Nsight, dcgmi dmon), and give the exporter SYS_ADMIN",
		})
	}
	if len(results) == 0 {
		seen := "all that the nine cards and the events need"
		if page.QuietXID() {
			seen += "; XIDs cannot be seen before the first: the counters file needs DCGM_FI_DEV_XID_ERRORS"
		}
		results = []Result{{"exporter", "fields of " + host, OK, seen, ""}}
	}
	return results
}

// holders says whether the rows tell whose a device is, where nobody else does.
func (in *installation) holders(host string, page *exporterpage.Page) []Result {
	r := Result{"exporter", "pods of " + host, OK, fmt.Sprintf("%d of %d rows name a holder", page.Holders, page.Rows), ""}
	switch {
	case len(in.allocations()) > 0:
		if page.AsksKubelet {
			return []Result{r}
		}
		r.Seen, r.Remedy = "no pod labels: gpu_allocation says who holds a device", "with MIG switch them on too: DCGM_EXPORTER_KUBERNETES=true for the exporter, with the kubelet's pod-resources folder"
	case page.AsksKubelet || page.Holders > 0:
	default:
		r.Status, r.Seen = Warn, "no pod labels, and no gpu_allocation: nobody says who holds a device, so there are no services"
		r.Remedy = "on Kubernetes: DCGM_EXPORTER_KUBERNETES=true for the exporter, with the kubelet's pod-resources folder mounted, or use config/agent.yaml; with batch jobs: dcgm-exporter --hpc-job-mapping-dir"
	}
	return []Result{r}
}

// watch reads the page again later: on a healthy board energy rises.
func (in *installation) watch(ctx context.Context, host string, e exporter, before *exporterpage.Page) []Result {
	r := Result{"exporter", "movement of " + host, OK, fmt.Sprintf("values moved within %v", in.Watch), ""}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(in.Watch):
	}
	page, _, failed := in.readPage(ctx, e)
	if page == nil {
		return []Result{failed}
	}
	switch still, known := page.StoodStill(before); {
	case !known:
		r.Status, r.Seen = Skipped, "no energy on the page: whether it is frozen cannot be said"
	case still && in.Watch >= time.Minute:
		r.Status, r.Seen = Fail, fmt.Sprintf("frozen: energy and clocks of all GPUs stood still for %v", in.Watch)
		r.Remedy = "the host engine behind the exporter hangs: restart dcgm-exporter (and nv-hostengine), then look at dmesg for XIDs"
	case still:
		r.Status, r.Seen = Warn, fmt.Sprintf("energy and clocks of all GPUs stood still for %v", in.Watch)
		r.Remedy = "the exporter reads its devices every 30 s unless told otherwise: run it again with --watch 65s"
	}
	return []Result{r}
}
