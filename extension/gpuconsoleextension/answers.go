// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet/capacity"
	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// status answers also when the store does not.
func (a *api) status(ctx context.Context, _ *parameters) (any, error) {
	info := a.store.Info()
	out := &consoleapi.StatusAnswer{
		Version: a.version, State: consoleapi.StoreUnreachable, Freshness: a.reader.Unknown(),
		Store:     consoleapi.StoreStatus{Engine: info.Engine},
		Telemetry: consoleapi.Telemetry{DownExporters: []consoleapi.Exporter{}}, Endpoints: a.reader.Endpoints(),
		Config: a.settingsFor(info),
	}
	if info.Retention > 0 {
		retention := info.Retention.Seconds()
		out.Store.Retention = &retention
	}
	unstored := a.reader.Unstored()
	out.Store.Problems = unstored.Faults()
	err := a.read(ctx, func() error {
		s, err := a.reader.Status(ctx)
		if err != nil {
			return err
		}
		out.State, out.Freshness, out.Telemetry = s.State, s.Freshness, s.Telemetry
		put(&out.Config, s.Thresholds)
		events := a.reader.Events(fleet.EventQuery{})
		out.Telemetry.RaisedEvents, out.Telemetry.Notices = &events.Raised, &events.Notices
		return nil
	})
	out.Store.CircuitOpen = a.breaker.open()
	if err != nil {
		f := failed(err)
		if f == nil {
			return nil, err
		}
		out.Store.Error = &f.body
		return out, nil
	}
	out.Store.Reachable = true
	if out.State == consoleapi.NotStored {
		out.Store.Problems = unstored.Causes()
	}
	return out, nil
}

// settings is what a page needs to know of the configuration.
func (a *api) settingsFor(info store.Info) consoleapi.Config {
	c := a.config
	out := consoleapi.Config{
		Windows: []string{}, Refresh: c.Refresh.Seconds(), Remembered: c.Remembered.Seconds(), Grafana: c.Grafana.link(),
		Limits: consoleapi.Limits{
			MaxServicesPerRequest: c.MaxServicesPerRequest, MaxConcurrentRequests: c.MaxConcurrentRequests,
			MaxPointsPerSeries: c.MaxPointsPerSeries, MaxSeriesPerRange: c.MaxSeriesPerRange,
		},
	}
	put(&out, c.thresholds())
	for _, w := range fleet.Windows {
		if kept(info, w) {
			out.Windows = append(out.Windows, w.Name)
		}
	}
	return out
}

// put writes thresholds, and where they are from.
func put(out *consoleapi.Config, t fleet.Thresholds) {
	out.Warmup, out.PartialThreshold = t.Warmup.Seconds(), t.PartialThreshold
	out.IdleThreshold, out.IdleFor = t.IdleThreshold, t.IdleFor.Seconds()
	out.ThresholdsFrom = consoleapi.FromConsole
	if t.Published {
		out.ThresholdsFrom = consoleapi.FromSummary
	}
}

// kept reports whether a window is within the retention.
func kept(info store.Info, w fleet.Window) bool {
	return info.Retention == 0 || w.Length <= info.Retention
}

func (a *api) services(ctx context.Context, p *parameters) (any, error) {
	limit, after := p.limit(a.config.MaxServicesPerRequest), p.cursor()
	match, trend, inference := p.text("q", maxName), p.flag("trend"), p.flag("inference")
	var over *fleet.Window
	if p.has("window") {
		over = a.window(p)
	}
	if p.err != nil {
		return nil, p.err
	}
	out := &consoleapi.ServicesAnswer{}
	err := a.read(ctx, func() error {
		all, err := a.reader.Services(ctx, match, after != nil)
		if err != nil {
			return err
		}
		page := pageOf(after, limit, all.Len(), all.Key)
		if page.next != nil {
			a.reader.Keep(match, all)
		}
		some := all.Some(ctx, page.from, page.to)
		if inference {
			if err := some.AddInference(ctx); err != nil {
				return err
			}
		}
		out.Services, out.Trend, err = some.Page(ctx, trend, over)
		out.Total, out.Next, out.Summary, out.Freshness = all.Len(), page.next, all.Summary, all.Freshness()
		return err
	})
	return out, err
}

func (a *api) service(ctx context.Context, p *parameters) (any, error) {
	key := p.key()
	if p.err != nil {
		return nil, p.err
	}
	var out *consoleapi.ServiceAnswer
	err := a.read(ctx, func() (err error) {
		out, err = a.reader.Service(ctx, key)
		return err
	})
	if err == nil && out == nil {
		err = unknownService()
	}
	return out, err
}

func (a *api) pods(ctx context.Context, p *parameters) (any, error) {
	key, limit, after := p.key(), p.limit(a.config.MaxServicesPerRequest), p.cursor()
	if p.err != nil {
		return nil, p.err
	}
	out := &consoleapi.PodsAnswer{}
	err := a.read(ctx, func() error {
		all, err := a.reader.Pods(ctx, key)
		if err != nil || all == nil {
			out = nil
			return err
		}
		page := pageOf(after, limit, all.Len(), all.Key)
		out.Pods, err = all.Page(ctx, page.from, page.to)
		out.Total, out.Next, out.Freshness = all.Len(), page.next, all.Freshness()
		return err
	})
	if err == nil && out == nil {
		err = unknownService()
	}
	return out, err
}

func (a *api) nodes(ctx context.Context, p *parameters) (any, error) {
	limit, after, match := p.limit(a.config.MaxServicesPerRequest), p.cursor(), p.text("q", maxName)
	attention := p.flag("attention")
	var named *fleet.Where
	if p.has("node") || p.has("device") || p.has("cluster") {
		named = p.where()
	}
	if p.err != nil {
		return nil, p.err
	}
	out := &consoleapi.NodesAnswer{}
	err := a.read(ctx, func() error {
		all, err := a.reader.Nodes(ctx, match, named, attention)
		if err != nil {
			return err
		}
		page := pageOf(after, limit, all.Len(), all.Key)
		out.Nodes, err = all.Page(ctx, page.from, page.to)
		out.Total, out.Next, out.Pending, out.Freshness = all.Len(), page.next, all.Pending, all.Freshness()
		out.Exporters = all.Exporters
		return err
	})
	return out, err
}

// window is one that the store keeps samples for.
func (a *api) window(p *parameters) *fleet.Window {
	name := p.oneOf("window", "", "5m", "30m", "1h", "24h")
	if p.err != nil {
		return nil
	}
	window := fleet.WindowNamed(name)
	if info := a.store.Info(); !kept(info, window) {
		p.err = exceeded("window is longer than the store keeps samples, which is retention: " + info.Retention.Round(time.Minute).String() + ".")
	}
	return &window
}

func (a *api) charts(ctx context.Context, p *parameters) (any, error) {
	key := p.key()
	window := a.window(p)
	by := p.oneOf("by", fleet.ByService, fleet.ByService, fleet.ByPod)
	if p.err != nil {
		return nil, p.err
	}
	var out *consoleapi.RangeAnswer
	err := a.read(ctx, func() (err error) {
		out, err = a.reader.Range(ctx, key, *window, by)
		return err
	})
	return out, err
}

func (a *api) deviceCharts(ctx context.Context, p *parameters) (any, error) {
	where, window := p.where(), a.window(p)
	if p.err != nil {
		return nil, p.err
	}
	var out *consoleapi.DeviceRangeAnswer
	err := a.read(ctx, func() (err error) {
		out, err = a.reader.DeviceRange(ctx, *where, *window)
		return err
	})
	if err == nil && out == nil {
		err = unknownDevice()
	}
	return out, err
}

func (a *api) events(_ context.Context, p *parameters) (any, error) {
	limit, after := p.limit(a.config.MaxServicesPerRequest), p.cursor()
	q := fleet.EventQuery{
		Name: p.text("name", 128), Text: strings.ToLower(p.text("q", maxName)),
		Active: p.flag("active"),
	}
	if p.has("min_severity") {
		q.MinSeverity = p.oneOf("min_severity", "", "info", "warn", "error")
	}
	if slices.ContainsFunc(serviceParameters, p.has) {
		key := p.key()
		q.Service = &key
	}
	if p.err != nil {
		return nil, p.err
	}
	all := a.reader.Events(q)
	page := pageOf(after, limit, all.Len(), all.Key)
	return &consoleapi.EventsAnswer{
		Events: all.Page(page.from, page.to), Total: all.Len(), Next: page.next, Raised: all.Raised, Notices: all.Notices, Freshness: all.Freshness(),
	}, nil
}

// acknowledge keeps that a notice was seen.
func (a *api) acknowledge(ctx context.Context, p *parameters) (any, error) {
	var asked consoleapi.Acknowledgement
	decoder := json.NewDecoder(bytes.NewReader(p.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil || asked.EventID == "" {
		return nil, invalid(`The body is not as in {"event_id": "…"}.`)
	}
	event, err := a.reader.Acknowledge(ctx, asked.EventID)
	switch {
	case errors.Is(err, fleet.ErrNoSuchEvent):
		return nil, fail(http.StatusNotFound, consoleapi.NotFound, "This event is not known.", sentence(err.Error()))
	case errors.Is(err, fleet.ErrNoNotice):
		return nil, invalid(sentence(err.Error()))
	case err != nil:
		return nil, fail(http.StatusBadGateway, consoleapi.UpstreamUnreachable, "The store did not keep the acknowledgement.", sentence(err.Error()))
	}
	return &consoleapi.AcknowledgeAnswer{Event: *event}, nil
}

const (
	// maxRequestSize bounds the devices of a request, requestSize is what is asked about
	// unless another size is wanted.
	maxRequestSize = 1024
	requestSize    = 8
)

var capacityParameters = []string{"size", "cluster", "resource", "model", "q", "show", "limit", "cursor"}

// capacity answers what the scheduler has to give, where a request fits, and what waits.
func (a *api) capacity(ctx context.Context, p *parameters) (any, error) {
	limit, after := p.limit(a.config.MaxServicesPerRequest), p.cursor()
	q := capacity.Query{
		Size: requestSize, Cluster: p.given("cluster"), Resource: p.given("resource"), Model: p.given("model"), Node: strings.ToLower(p.text("q", maxName)),
		Show: p.oneOf("show", capacity.Fitting, capacity.Fitting, capacity.Stranded, capacity.Free, capacity.All),
	}
	if p.has("size") {
		q.Size = p.whole("size", maxRequestSize)
	}
	if p.err != nil {
		return nil, p.err
	}
	var out *consoleapi.CapacityAnswer
	err := a.read(ctx, func() error {
		all, freshness, err := a.reader.Capacity(ctx, &q)
		if err != nil {
			return err
		}
		page := pageOf(after, limit, all.Len(), all.Key)
		out = all.Page(page.from, page.to)
		out.Next, out.Freshness = page.next, freshness
		return nil
	})
	return out, err
}
