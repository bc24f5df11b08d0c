// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
)

// maxExporters is how many exporters are looked at.
const maxExporters = 64

// dcgmConfig is what matters here of a dcgm receiver's configuration.
type dcgmConfig struct {
	Endpoints  []string        `mapstructure:"endpoints"`
	Kubernetes *dcgmKubernetes `mapstructure:"kubernetes"`
	Scrape     scrapeConfig    `mapstructure:"scrape"`
	page       exporterpage.Settings
}

// exporter is one to look at.
type exporter struct {
	url     string
	version string // of its image, where discovery knows it
	client  *http.Client
	page    exporterpage.Settings
}

func (in *installation) dcgm() []dcgmConfig {
	if in.configuration == nil {
		return nil
	}
	var all []dcgmConfig
	for _, c := range in.of("receivers", "dcgm") {
		cfg := dcgmConfig{page: exporterpage.DefaultSettings()}
		if c.read(&cfg) == nil && c.read(&cfg.page) == nil {
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
	in.progress.add(len(exporters))
	each := make([][]Result, len(exporters))
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, e := range exporters {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			// A goroutine of its own: a panic in it would not be caught above.
			each[i] = bounded(ctx, check{"exporter", func(ctx context.Context) []Result { return in.checkExporter(ctx, e) }}, in.Timeout+in.Watch)
			in.progress.end()
		})
	}
	wg.Wait()
	return append(slices.Concat(each...), results...)
}

// exporters are those to look at, and what is to be said before.
func (in *installation) exporters(ctx context.Context) ([]exporter, []Result) {
	var all []exporter
	for _, e := range in.Exporters {
		all = append(all, exporter{url: pageOf(e), client: ofExporters(direct(nil), true), page: exporterpage.DefaultSettings()})
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
		if err == nil {
			_, err = d.page.Options("")
		}
		if err != nil {
			results = append(results, Result{"exporter", "scrape", Fail, err.Error(), "check dcgm::scrape, and that its files are mounted"})
			continue
		}
		client = ofExporters(client, d.page.Scrape.FollowRedirects == nil || *d.page.Scrape.FollowRedirects)
		for _, e := range d.Endpoints {
			all = append(all, exporter{url: pageOf(e), client: client, page: d.page})
		}
		if d.Kubernetes != nil {
			found, r := in.discover(ctx, d.Kubernetes, exporter{client: client, page: d.page})
			all, results = append(all, found...), append(results, r...)
		}
	}
	return all, results
}

// pageOf is what the receiver asks for at an endpoint.
func pageOf(endpoint string) string {
	u, err := exporterpage.Address(endpoint)
	if err != nil {
		return endpoint // asking for it says why
	}
	return u.String()
}

// ofExporters has a client follow redirects where the receiver does.
func ofExporters(client *http.Client, follow bool) *http.Client {
	if follow {
		client.CheckRedirect = exporterpage.FollowWithin
	}
	return client
}

func (in *installation) checkExporter(ctx context.Context, e exporter) []Result {
	host := hostOf(e.url)
	page, a, r := in.readPage(ctx, e)
	if page == nil {
		return append([]Result{r}, in.clockOf(host, a)...)
	}
	results := []Result{in.describe(host, e, page)}
	results = append(results, lines(host, page)...)
	results = append(results, in.clockOf(host, a)...)
	results = append(results, lacks(host, e, page)...)
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

// lines reports what of the page the receiver leaves out.
func lines(host string, page *exporterpage.Page) []Result {
	var results []Result
	warn := func(n int, seen, remedy string) {
		if n > 0 {
			results = append(results, Result{"exporter", host, Warn, seen, remedy})
		}
	}
	warn(page.Unparsable, fmt.Sprintf("lines of the page that are no samples: %d; of the first: %s", page.Unparsable, page.Cause), page.LineRemedy)
	warn(page.Repeated, fmt.Sprintf("samples of a series that the page has already: %d; the first of each counts", page.Repeated), exporterpage.RemedyOfRepeated)
	warn(page.TooLong, fmt.Sprintf("samples over a limit, left out: %d; of the first: %s", page.TooLong, page.LongCause), exporterpage.RemedyOfLong)
	warn(page.Beyond, fmt.Sprintf("samples beyond a limit of the receiver, left out: %d; the page has %s", page.Beyond, page.OverLimit), page.OverRemedy)
	warn(page.Silent, fmt.Sprintf("GPUs without any value: %d of %d", page.Silent, page.Devices), "look at dmesg and nvidia-smi on its node: such a GPU has failed, or has no field of the counters file")
	return results
}

// readPage reads the page as the receiver does, or reports why not.
func (in *installation) readPage(ctx context.Context, e exporter) (*exporterpage.Page, *answer, Result) {
	a, err := get(ctx, e.client, e.url, http.Header{"Accept": {"text/plain;version=0.0.4"}})
	seen := ""
	var page *exporterpage.Page
	switch limit := e.page.BodyLimit(); {
	case err != nil:
		// As Go's client has it: an error of the connection, whatever it is.
		err = &url.Error{Op: "Get", Err: err}
		seen = why(plain(err))
	case a.status != http.StatusOK:
		err, seen = &exporterpage.StatusError{Code: a.status, Text: fmt.Sprint(a.status)}, fmt.Sprintf("it answers %d", a.status)
	case limit > 0 && int64(len(a.body)) > limit:
		err, seen = exporterpage.ErrTooLarge, fmt.Sprintf("a page of %d bytes, scrape::body_size_limit is %d", len(a.body), limit)
	default:
		var options exporterpage.Options
		if options, err = e.page.Options(hostOf(e.url)); err == nil {
			page, err = exporterpage.Read(a.body, options)
		}
		if err != nil {
			seen = safetext.Strip(err.Error(), 500)
		}
	}
	outcome := exporterpage.Failed(err)
	if err == nil {
		if page.Outcome == exporterpage.OK {
			return page, a, Result{}
		}
		outcome, seen = page.Outcome, page.Why
	}
	return nil, a, Result{"exporter", hostOf(e.url), Fail, seen, string(outcome) + ": " + outcome.Remedy(err)}
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
func lacks(host string, e exporter, page *exporterpage.Page) []Result {
	var absent, blank, lines []string
	for _, l := range page.Lacks(e.version) {
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
