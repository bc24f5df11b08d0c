// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
	"github.com/otelcol-gpu/otelcol-gpu/internal/vendorpage"
	amdpage "github.com/otelcol-gpu/otelcol-gpu/receiver/amdgpureceiver/exporterpage"
	dcgmpage "github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
	gaudipage "github.com/otelcol-gpu/otelcol-gpu/receiver/gaudireceiver/exporterpage"
	intelpage "github.com/otelcol-gpu/otelcol-gpu/receiver/intelgpureceiver/exporterpage"
)

// kinds are the exporters other than dcgm-exporter, of which more is looked at.
var kinds = []*vendorpage.Kind{&amdpage.Kind, &gaudipage.Kind, &intelpage.Kind}

// exporterOf are names and remedies of the exporter that a receiver scrapes.
func exporterOf(receiver string) *fetch.Exporter {
	if kind := kindByType(receiver); kind != nil {
		return kind.Exporter
	}
	return dcgmpage.Exporter
}

// exporterAt is exporterOf, where there is no receiver by the port of the exporter.
func exporterAt(e exporter) *fetch.Exporter {
	u, err := url.Parse(e.url)
	if e.receiver != "" || err != nil {
		return exporterOf(e.receiver)
	}
	for _, k := range kinds {
		if port := u.Port(); port == strconv.Itoa(k.Exporter.Port) && k.Exporter.Port != genericPort {
			return k.Exporter
		}
	}
	return dcgmpage.Exporter
}

// genericPort is that of too many programs.
const genericPort = 8080

func kindByType(receiver string) *vendorpage.Kind {
	for _, k := range kinds {
		if k.Exporter.Type == receiver {
			return k
		}
	}
	return nil
}

// kindOf is the exporter of a page: that of its receiver, or without one what the page's
// families are of. nil is dcgm-exporter, or no exporter at all.
func kindOf(e exporter, body []byte) *vendorpage.Kind {
	if e.receiver != "" {
		return kindByType(e.receiver)
	}
	return kindByFamilies(e, body)
}

// kindByFamilies knows the exporter by the families on its page.
func kindByFamilies(e exporter, body []byte) *vendorpage.Kind {
	options, err := e.page.Options(web.HostOf(e.url))
	if err != nil {
		return nil
	}
	for _, k := range kinds {
		if page, err := k.Read(body, options); err == nil && page.Ours > 0 {
			return k
		}
	}
	return nil
}

// otherKind is what to do where a receiver scrapes the page of another vendor's exporter.
func otherKind(e exporter, body []byte) (remedy string) {
	if kind := kindByFamilies(e, body); kind != nil {
		return pageOfOther(kind.Exporter)
	}
	options, err := e.page.Options(web.HostOf(e.url))
	if err != nil {
		return ""
	}
	if page, err := dcgmpage.Read(body, options); err != nil || page.Known == 0 {
		return ""
	}
	return pageOfOther(dcgmpage.Exporter)
}

func pageOfOther(of *fetch.Exporter) string {
	return fmt.Sprintf("this is the page of %s: scrape it with the receiver %s", of.Program, of.Type)
}

// checkKind looks at the page of an exporter other than dcgm-exporter.
func checkKind(ctx context.Context, env probe.Env, kind *vendorpage.Kind, e exporter, body []byte) []probe.Result {
	host := web.HostOf(e.url)
	page, r := readKind(kind, e, body)
	if page == nil {
		return []probe.Result{r}
	}
	results := append([]probe.Result{describeKind(host, kind, e, page)}, lines(host, &page.Lines)...)
	if page.Unnamed > 0 {
		results = append(results, probe.New(host, probe.Warn, fmt.Sprintf("rows that do not identify their device, left out: %d", page.Unnamed), kind.Exporter.NoIdentity))
	}
	results = append(results, cards(host, kind, page)...)
	for _, f := range kind.Settings(page) {
		status := probe.OK
		if f.Fault {
			status = probe.Warn
		}
		results = append(results, probe.New("settings of "+host, status, f.Seen, f.Remedy))
	}
	results = append(results, ownersOfKind(env, host, page))
	if env.Watch > 0 {
		results = append(results, watchKind(ctx, env.Watch, kind, e, page))
	}
	return results
}

// readKind reads the page as the receiver does, or reports why not.
func readKind(kind *vendorpage.Kind, e exporter, body []byte) (*vendorpage.Page, probe.Result) {
	options, err := e.page.Options(web.HostOf(e.url))
	var page *vendorpage.Page
	if err == nil {
		page, err = kind.Read(body, options)
	}
	switch {
	case err != nil:
		return nil, failed(e, kind.Exporter, safetext.Strip(err.Error(), 500), err)
	case page.Outcome == fetch.OK:
		return page, probe.Result{}
	}
	remedy := kind.Exporter.Remedy(page.Outcome, nil)
	if page.Ours == 0 {
		if other := otherKind(e, body); other != "" {
			remedy = other
		}
	}
	return nil, probe.New(web.HostOf(e.url), probe.Fail, page.Why, string(page.Outcome)+": "+remedy)
}

func describeKind(host string, kind *vendorpage.Kind, e exporter, page *vendorpage.Page) probe.Result {
	parts := []string{fmt.Sprintf("%s devices: %d", kind.Vendor.HwVendor, page.Boards)}
	if page.Parts > 0 {
		parts[0] += fmt.Sprintf(", with %d partitions or tiles", page.Parts)
	}
	if len(page.Models) > 0 {
		parts[0] += " (" + strings.Join(page.Models, ", ") + ")"
	}
	if len(page.Drivers) > 0 {
		parts = append(parts, "driver "+strings.Join(page.Drivers, ", "))
	}
	program := kind.Exporter.Program + " " + e.version
	if e.version == "" {
		program = strings.TrimSpace("by its families of " + kind.Exporter.Program + " " + kind.Version(page))
	}
	parts = append(parts, program)
	return probe.New(host, probe.OK, strings.Join(append(parts, fmt.Sprintf("%d rows", page.Rows)), ", "), "")
}

// cards are those of a service that stay empty.
func cards(host string, kind *vendorpage.Kind, page *vendorpage.Page) []probe.Result {
	subject := "cards of " + host
	var results []probe.Result
	for _, c := range page.Lacks(kind) {
		results = append(results, probe.New(subject, probe.Warn, "without a value on the page: card "+c.Name, c.Remedy))
	}
	if len(results) == 0 {
		results = append(results, probe.New(subject, probe.OK, "utilization, memory and power; not measured by this vendor: "+kind.Never, ""))
	}
	return results
}

// ownersOfKind is whether the page, or something else, reports who holds a device.
func ownersOfKind(env probe.Env, host string, page *vendorpage.Page) probe.Result {
	r := probe.New("pods of "+host, probe.OK, fmt.Sprintf("%d of %d devices name an owner", page.WithOwner, page.Boards+page.Parts), "")
	if len(env.Config.Allocations()) == 0 && page.WithOwner == 0 {
		r.Status, r.Seen = probe.Warn, "no owner on the page, and no gpu_allocation: nothing reports who holds a device, so there are no services"
		r.Remedy = "on Kubernetes use config/agent.yaml, which has gpu_allocation; with batch jobs let the exporter print their labels"
	}
	return r
}

// watchKind reads the page again later: on a healthy board energy rises.
func watchKind(ctx context.Context, every time.Duration, kind *vendorpage.Kind, e exporter, before *vendorpage.Page) probe.Result {
	host := web.HostOf(e.url)
	r := probe.New("movement of "+host, probe.OK, fmt.Sprintf("values moved within %v", every), "")
	select {
	case <-ctx.Done():
		r.Status, r.Seen = probe.Skipped, "not looked at"
		return r
	case <-time.After(every):
	}
	body, _, failed := readBody(ctx, e)
	if body == nil {
		return failed
	}
	page, failed := readKind(kind, e, body)
	if page == nil {
		return failed
	}
	switch still, known := page.StoodStill(before); {
	case !known:
		r.Status, r.Seen = probe.Skipped, "no energy on the page: whether it is frozen is unknown"
	case still && every >= time.Minute:
		r.Status, r.Seen, r.Remedy = probe.Fail, fmt.Sprintf("frozen: the energy of no device rose for %v", every), "the exporter repeats old values: restart it, and look at its log and at dmesg"
	case still:
		r.Status, r.Seen, r.Remedy = probe.Warn, fmt.Sprintf("the energy of no device rose for %v", every), "exporters cache their readings: run it again with --watch 65s"
	}
	return r
}
