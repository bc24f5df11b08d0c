// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package exporter is the probe of the vendors' exporters and of their pages.
package exporter

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
)

// maxExporters is how many exporters are looked at.
const maxExporters = 64

// exporter is one to look at.
type exporter struct {
	receiver string // the type that scrapes it, empty where the page decides
	url      string
	version  string // of its image, where discovery knows it
	client   *http.Client
	page     fetch.Settings
}

// Probe reads the pages of the exporters as the receiver does.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	exporters, results := exporters(ctx, env)
	if len(exporters) > maxExporters {
		results = append(results, probe.New("", probe.Skipped, fmt.Sprintf("%d of %d exporters are not looked at", len(exporters)-maxExporters, len(exporters)), ""))
		exporters = exporters[:maxExporters]
	}
	checks := make([]probe.Check, len(exporters))
	for i, e := range exporters {
		checks[i] = probe.Check{Name: "exporter", Run: func(ctx context.Context) []probe.Result { return checkExporter(ctx, env, e) }}
	}
	return append(probe.Run(ctx, checks, env.Timeout+env.Watch, env.Progress), results...)
}

// exporters are those to look at, and the results of finding them.
func exporters(ctx context.Context, env probe.Env) ([]exporter, []probe.Result) {
	var all []exporter
	for _, e := range env.Exporters {
		all = append(all, exporter{url: pageOf(e), client: ofExporters(web.Direct(nil), true), page: exporterpage.DefaultSettings()})
	}
	if len(all) > 0 {
		return all, nil
	}
	receivers := env.Config.Exporters()
	if len(receivers) == 0 {
		return nil, []probe.Result{probe.New("", probe.Skipped, "the configuration has no dcgm receiver in a pipeline", "")}
	}
	var results []probe.Result
	for _, d := range receivers {
		if d.Source == "sysfs" {
			results = append(results, probe.New(d.ID, probe.Skipped, "it reads the driver's files and no exporter", ""))
			continue
		}
		as, err := clientOf(d)
		if err != nil {
			results = append(results, probe.New("scrape", probe.Fail, err.Error(), "check "+d.Type+"::scrape, and that its files are mounted"))
			continue
		}
		for _, e := range d.Endpoints {
			all = append(all, exporter{receiver: d.Type, url: pageOf(e), client: as.client, page: as.page})
		}
		if d.Kubernetes != nil {
			found, r := discover(ctx, env.Kube, d.Kubernetes, as)
			all, results = append(all, found...), append(results, r...)
		}
	}
	return all, results
}

// clientOf is how the receiver asks its exporters: an exporter without an address.
func clientOf(d config.Exporters) (exporter, error) {
	var cfg struct {
		Scrape scrapeConfig `mapstructure:"scrape"`
	}
	e := exporter{receiver: d.Type, page: fetch.DefaultSettings(d.Type)}
	if err := d.Read(&cfg); err != nil {
		return e, err
	}
	if err := d.Read(&e.page); err != nil {
		return e, err
	}
	client, err := cfg.Scrape.client()
	if err != nil {
		return e, err
	}
	if _, err := e.page.Options(""); err != nil {
		return e, err
	}
	e.client = ofExporters(client, e.page.Scrape.FollowRedirects == nil || *e.page.Scrape.FollowRedirects)
	return e, nil
}

// pageOf is what the receiver asks for at an endpoint.
func pageOf(endpoint string) string {
	u, err := fetch.Address(endpoint)
	if err != nil {
		return endpoint // the request fails with the reason
	}
	return u.String()
}

// ofExporters has a client follow redirects where the receiver does.
func ofExporters(client *http.Client, follow bool) *http.Client {
	if follow {
		client.CheckRedirect = fetch.FollowWithin
	}
	return client
}

func checkExporter(ctx context.Context, env probe.Env, e exporter) []probe.Result {
	host := web.HostOf(e.url)
	body, a, r := readBody(ctx, e)
	if a != nil && a.Status == http.StatusTooManyRequests && sleep(ctx, againAfter) {
		body, a, r = readBody(ctx, e) // the first answer of the interval was the collector's own
	}
	if body == nil {
		return append([]probe.Result{r}, probe.Clock(host, a)...)
	}
	if kind := kindOf(e, body); kind != nil {
		return append(checkKind(ctx, env, kind, e, body), probe.Clock(host, a)...)
	}
	page, r := readDCGM(e, body)
	if page == nil {
		return append([]probe.Result{r}, probe.Clock(host, a)...)
	}
	results := []probe.Result{describe(host, e, page)}
	results = append(results, lines(host, &page.Lines)...)
	if page.Silent > 0 {
		results = append(results, probe.New(host, probe.Warn, fmt.Sprintf("GPUs without any value: %d of %d", page.Silent, page.Devices), "look at dmesg and nvidia-smi on its node: such a GPU has failed, or has no field of the counters file"))
	}
	results = append(results, probe.Clock(host, a)...)
	results = append(results, lacks(host, e, page)...)
	results = append(results, checks(host, e, page))
	results = append(results, owners(env, host, page)...)
	if env.Watch > 0 {
		results = append(results, watch(ctx, env.Watch, host, e, page)...)
	}
	return results
}

// lines reports what of the page the receiver leaves out.
func lines(host string, page *vendorpage.Lines) []probe.Result {
	var results []probe.Result
	warn := func(n int, seen, remedy string) {
		if n > 0 {
			results = append(results, probe.New(host, probe.Warn, seen, remedy))
		}
	}
	warn(page.Unparsable, fmt.Sprintf("lines of the page that are no samples: %d; of the first: %s", page.Unparsable, page.Cause), page.LineRemedy)
	warn(page.Repeated, fmt.Sprintf("samples of a series that the page has already: %d; the first of each counts", page.Repeated), page.RepeatedRemedy)
	warn(page.TooLong, fmt.Sprintf("samples over a limit, left out: %d; of the first: %s", page.TooLong, page.LongCause), page.LongRemedy)
	warn(page.Doubtful, fmt.Sprintf("samples in a unit about which the page contradicts itself, left out: %d; %s", page.Doubtful, page.Doubt), page.DoubtRemedy)
	if page.Unrecognized {
		seen := "the exporter's fields are not known: none of its page has the utilization, memory or power of a device"
		if len(page.Unknown) > 0 {
			seen += "; unknown: " + listed(page.Unknown)
		}
		results = append(results, probe.New(host, probe.Fail, seen, page.UnknownRemedy))
	} else {
		warn(len(page.Unknown), "fields of the page that are not known and may have quantities that it lacks: "+listed(page.Unknown), page.UnknownRemedy)
	}
	warn(page.Beyond, fmt.Sprintf("samples beyond a limit of the receiver, left out: %d; the page has %s", page.Beyond, page.OverLimit), page.OverRemedy)
	return results
}

// maxUnknown is how many unknown fields are named.
const maxUnknown = 16

// listed are the first of the fields, with what they may be.
func listed(fields []devicemap.Unknown) string {
	var all []string
	for _, u := range fields[:min(maxUnknown, len(fields))] {
		all = append(all, safetext.Strip(u.String(), 200))
	}
	if more := len(fields) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, "; ")
}

// againAfter is after how long an exporter that limits how often it is asked answers again.
var againAfter = 5500 * time.Millisecond

// sleep waits, if there is the time for it.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, limited := ctx.Deadline(); limited && time.Until(deadline) < d+time.Second {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// readBody asks for the page, or reports why that failed.
func readBody(ctx context.Context, e exporter) ([]byte, *web.Answer, probe.Result) {
	a, err := web.Get(ctx, e.client, e.url, http.Header{"Accept": {"text/plain;version=0.0.4"}})
	seen := ""
	switch limit := e.page.BodyLimit(); {
	case err != nil:
		// As Go's client has it: an error of the connection, whatever it is.
		err = &url.Error{Op: "Get", Err: err}
		seen = web.Why(web.Plain(err))
	case a.Status != http.StatusOK:
		err, seen = &fetch.StatusError{Code: a.Status, Text: fmt.Sprint(a.Status)}, fmt.Sprintf("it answers %d", a.Status)
	case limit > 0 && int64(len(a.Body)) > limit:
		err, seen = fetch.ErrTooLarge, fmt.Sprintf("a page of %d bytes, scrape::body_size_limit is %d", len(a.Body), limit)
	default:
		return append([]byte{}, a.Body...), a, probe.Result{}
	}
	return nil, a, failed(e, exporterAt(e), seen, err)
}

// failed is an exporter of which there is no page, with the receiver's outcome and remedy.
func failed(e exporter, of *fetch.Exporter, seen string, err error) probe.Result {
	outcome := of.Failed(err)
	return probe.New(web.HostOf(e.url), probe.Fail, seen, string(outcome)+": "+of.Remedy(outcome, err))
}

// readDCGM reads the page as the dcgm receiver does, or reports why not.
func readDCGM(e exporter, body []byte) (*exporterpage.Page, probe.Result) {
	options, err := e.page.Options(web.HostOf(e.url))
	var page *exporterpage.Page
	if err == nil {
		page, err = exporterpage.Read(body, options)
	}
	switch {
	case err != nil:
		return nil, failed(e, exporterpage.Exporter, safetext.Strip(err.Error(), 500), err)
	case page.Outcome != fetch.OK:
		remedy := exporterpage.Remedy(page.Outcome, nil)
		if kind := kindByFamilies(e, body); kind != nil && page.Known == 0 {
			remedy = pageOfOther(kind.Exporter)
		}
		return nil, probe.New(web.HostOf(e.url), probe.Fail, page.Why, string(page.Outcome)+": "+remedy)
	}
	return page, probe.Result{}
}

func describe(host string, e exporter, page *exporterpage.Page) probe.Result {
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
	return probe.New(host, probe.OK, strings.Join(append(parts, fmt.Sprintf("%d rows", page.Rows)), ", "), "")
}

// lacks are the fields that are missing, and what for.
func lacks(host string, e exporter, page *exporterpage.Page) []probe.Result {
	var absent, blank, lines []string
	for _, l := range page.Lacks(e.version) {
		text := l.Field + " (" + strings.Join(l.For, ", ") + ")"
		if l.Blank {
			blank = append(blank, text)
			continue
		}
		absent, lines = append(absent, text), append(lines, l.Line)
	}
	var results []probe.Result
	if len(absent) > 0 {
		results = append(results, probe.New("fields of "+host, probe.Warn, "not on the page: "+strings.Join(absent, "; "),
			"add these lines to the exporter's counters file (--collectors, DCGM_EXPORTER_COLLECTORS) and restart it; where a line is there already, the board gives no value; DCGM_FI_PROF_* need a data-centre GPU and the capability SYS_ADMIN:\n"+strings.Join(lines, "\n")))
	}
	if len(blank) > 0 {
		results = append(results, probe.New("fields of "+host, probe.Warn, "without a value: "+strings.Join(blank, "; "),
			"the board or its driver gives none, and these stay empty; for DCGM_FI_PROF_* end other profilers (Nsight, dcgmi dmon), and give the exporter SYS_ADMIN"))
	}
	if len(results) == 0 {
		seen := "all that the nine cards and the events need"
		if page.QuietXID() {
			seen += "; XIDs cannot be seen before the first: the counters file needs DCGM_FI_DEV_XID_ERRORS"
		}
		results = []probe.Result{probe.New("fields of "+host, probe.OK, seen, "")}
	}
	return results
}

// checks is which reasons against the health of a GPU cannot be judged, and for want of
// which fields.
func checks(host string, e exporter, page *exporterpage.Page) probe.Result {
	unjudged, all := page.Unjudged(e.version)
	status := probe.OK
	var off, lines []string
	for _, u := range unjudged {
		var fields []string
		for _, l := range u.Lacks {
			text := l.Field
			if l.Blank {
				text += " has no value"
			} else if !slices.Contains(lines, l.Line) {
				lines = append(lines, l.Line)
			}
			fields = append(fields, text)
		}
		off = append(off, u.Reason+" ("+strings.Join(fields, ", ")+")")
		if !u.Optional {
			status = probe.Warn
		}
	}
	seen := fmt.Sprintf("%d of %d checks of the health of its GPUs have their fields", all-len(off), all)
	if len(off) > 0 {
		seen += "; without: " + strings.Join(off, "; ")
	}
	remedy := "these reasons are never raised, and gpu.health.coverage shows it: the board or its driver gives none of these values"
	if len(lines) > 0 {
		remedy = "these reasons are never raised, and gpu.health.coverage shows it. Add these lines to the exporter's counters file; where a line is there already, the board gives no value:\n" + strings.Join(lines, "\n")
	}
	return probe.New("health of "+host, status, seen, remedy)
}

// owners is whether the rows name the owners of devices, where nothing else does.
func owners(env probe.Env, host string, page *exporterpage.Page) []probe.Result {
	r := probe.New("pods of "+host, probe.OK, fmt.Sprintf("%d of %d rows name an owner", page.WithOwner, page.Rows), "")
	switch {
	case len(env.Config.Allocations()) > 0:
		if page.AsksKubelet {
			return []probe.Result{r}
		}
		r.Seen, r.Remedy = "no pod labels: gpu_allocation reports who holds a device", "with MIG switch them on too: DCGM_EXPORTER_KUBERNETES=true for the exporter, with the kubelet's pod-resources folder"
	case page.AsksKubelet || page.WithOwner > 0:
	default:
		r.Status, r.Seen = probe.Warn, "no pod labels, and no gpu_allocation: nothing reports who holds a device, so there are no services"
		r.Remedy = "on Kubernetes: DCGM_EXPORTER_KUBERNETES=true for the exporter, with the kubelet's pod-resources folder mounted, or use config/agent.yaml; with batch jobs: dcgm-exporter --hpc-job-mapping-dir"
	}
	return []probe.Result{r}
}

// watch reads the page again later: on a healthy board energy rises.
func watch(ctx context.Context, every time.Duration, host string, e exporter, before *exporterpage.Page) []probe.Result {
	r := probe.New("movement of "+host, probe.OK, fmt.Sprintf("values moved within %v", every), "")
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(every):
	}
	body, _, failed := readBody(ctx, e)
	if body == nil {
		return []probe.Result{failed}
	}
	page, failed := readDCGM(e, body)
	if page == nil {
		return []probe.Result{failed}
	}
	switch still, known := page.StoodStill(before); {
	case !known:
		r.Status, r.Seen = probe.Skipped, "no energy on the page: whether it is frozen is unknown"
	case still && every >= time.Minute:
		r.Status, r.Seen = probe.Fail, fmt.Sprintf("frozen: energy and clocks of all GPUs stood still for %v", every)
		r.Remedy = "the host engine behind the exporter hangs: restart dcgm-exporter (and nv-hostengine), then look at dmesg for XIDs"
	case still:
		r.Status, r.Seen = probe.Warn, fmt.Sprintf("energy and clocks of all GPUs stood still for %v", every)
		r.Remedy = "the exporter reads its devices every 30 s unless configured otherwise: run it again with --watch 65s"
	}
	return []probe.Result{r}
}
