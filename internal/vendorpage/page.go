// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendorpage

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

const maxNames = 16 // drivers and models that are reported

// Kind is a vendor's exporter, for a program that looks at pages without a receiver.
type Kind struct {
	Exporter *fetch.Exporter
	Vendor   *devicemap.Vendor
	// Pods and OtherPorts are those of the receiver's discovery.
	Pods       string
	OtherPorts []int
	// Version is the exporter's, as far as known from the page's families and labels, in
	// words: 1.4.0 or newer. It may be empty.
	Version func(*Page) string
	// Cards are those of a service that are made of what the exporter can print, and Never
	// names the others.
	Cards []Card
	Never string
	// Settings are findings about the exporter's settings.
	Settings func(*Page) []Finding
}

// Card is what a service shows, with the metric that it is made of, and what to do where
// the page has no value for it.
type Card struct{ Name, Metric, Attribute, Remedy string }

// Finding is one thing about an exporter's settings.
type Finding struct {
	// Fault is whether something is missing or wrong; else it is only worth knowing.
	Fault        bool
	Seen, Remedy string
}

// Page is what was read from a page.
type Page struct {
	Lines
	// Ours are rows of the vendor's families.
	Ours int
	// Boards are devices, Parts what they are divided into.
	Boards, Parts int
	// Drivers and Models are what the page names, sorted.
	Drivers, Models []string
	// WithOwner are devices that have an owner.
	WithOwner int
	// Unnamed are rows of known families that name no device.
	Unnamed int
	// NotRead are rows that print 0 since the exporter could not read them.
	NotRead int

	families, labels, metrics map[string]bool
	moving                    map[string]float64
}

// Read reads a page as the receiver does. An error is a page that the receiver refuses,
// see fetch.Failed.
func (k *Kind) Read(text []byte, o pagetext.Options) (*Page, error) {
	lines, rows, result, err := ReadLines(k.Exporter, k.Vendor, text, o)
	if err != nil {
		return nil, err
	}
	p := &Page{
		Lines: lines, Unnamed: result.Refused[devicemap.NoDevice], NotRead: result.Refused[devicemap.NoSensor],
		families: map[string]bool{}, labels: map[string]bool{}, metrics: map[string]bool{}, moving: map[string]float64{},
	}
	for _, row := range rows {
		if !row.Series.Ours() {
			continue
		}
		p.Ours++
		name := row.Series.Name()
		p.families[name] = true
		if k.Vendor.Family != nil {
			p.families[k.Vendor.Family(name)] = true
		}
		for label := range row.Series.Labels() {
			p.labels[strings.ToLower(label)] = true
		}
	}
	p.readDevices(result.Metrics)
	return p, nil
}

// readDevices notes what the page becomes.
func (p *Page) readDevices(md pmetric.Metrics) {
	drivers, models := map[string]bool{}, map[string]bool{}
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		text := func(key string) string {
			v, _ := attrs.Get(key)
			return v.Str()
		}
		id := text(names.HwID)
		if id == "" {
			continue
		}
		if text(names.HwParent) != "" {
			p.Parts++
		} else {
			p.Boards++
		}
		note(drivers, text(names.HwDriverVersion))
		note(models, text(names.HwModel))
		if _, several := attrs.Get(names.DeviceHolders); several || text(names.ExporterPod) != "" || text("hpc_job") != "" {
			p.WithOwner++
		}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			p.readMetric(id, m)
		}
	}
	p.Drivers, p.Models = slices.Sorted(maps.Keys(drivers)), slices.Sorted(maps.Keys(models))
}

func (p *Page) readMetric(id string, m pmetric.Metric) {
	points := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	}
	p.metrics[m.Name()] = true
	for _, point := range points.All() {
		for _, v := range point.Attributes().All() {
			p.metrics[m.Name()+"="+v.AsString()] = true
		}
		if m.Name() == names.HwEnergy.Name {
			p.moving[id] = point.DoubleValue()
		}
	}
}

// Has reports whether the page has a family with one of these beginnings.
func (p *Page) Has(beginnings ...string) bool {
	for family := range p.families {
		for _, b := range beginnings {
			if strings.HasPrefix(family, b) {
				return true
			}
		}
	}
	return false
}

// HasLabel reports whether a row has the label, in lower case, with a text.
func (p *Page) HasLabel(key string) bool { return p.labels[key] }

// Lacks are the cards that the page has no value for.
func (p *Page) Lacks(k *Kind) (lacking []Card) {
	for _, c := range k.Cards {
		metric := c.Metric
		if c.Attribute != "" {
			metric += "=" + c.Attribute
		}
		if !p.metrics[metric] {
			lacking = append(lacking, c)
		}
	}
	return lacking
}

// StoodStill is whether the energy of no device rose between an earlier page and this
// one. Without energy on both pages it is not known.
func (p *Page) StoodStill(earlier *Page) (still, known bool) {
	return maps.Equal(p.moving, earlier.moving), len(p.moving) > 0 && len(earlier.moving) > 0
}

// Finds reports whether a pod with these labels is one of the exporter's, as the
// receiver's discovery decides it without a selector.
func (k *Kind) Finds(labels map[string]string) bool {
	text := labels["app"] + ";" + labels["app.kubernetes.io/name"] + ";" + labels["k8s-app"]
	matched, err := regexp.MatchString("^(?:"+k.Pods+")$", text)
	return err == nil && matched
}

func note(set map[string]bool, name string) {
	if name != "" && len(set) < maxNames {
		set[safetext.Strip(name, 100)] = true
	}
}
