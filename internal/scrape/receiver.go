// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package scrape is what the receivers of all vendors' exporters do alike: which
// exporters are scraped and when, by endpoint or by Kubernetes discovery; a page is
// fetched, with credentials and within limits; and what came of it is counted and
// logged. What a page means is in an Exporter's Vendor.
//
// targets.go is the schedule, discovery.go finds exporters' pods, fetch.go gets a page,
// scraper.go has it read and mapped, and outcomeLog.go logs how that ended.
package scrape

import (
	"context"
	"time"

	promconfig "github.com/prometheus/prometheus/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape/fetch"
)

// Exporter is what must be known of a vendor's exporter.
type Exporter struct {
	fetch.Exporter
	Vendor *devicemap.Vendor
	// OwnNames is the value of names for the exporter's own names.
	OwnNames Names
	// IntervalOption is the exporter's option for how often it reads its devices.
	IntervalOption string
	// MinInterval is the least collection_interval, where it is more than a second: what
	// the exporter bears.
	MinInterval time.Duration
	// OtherPorts are further ports that versions of the exporter listen on by default. The
	// one that the pod declares counts.
	OtherPorts []int
	// Pods matches the label app, app.kubernetes.io/name or k8s-app of the exporter's
	// pods, as a regular expression for the three, joined by ";".
	Pods string
	// SharedPods matches, as Pods does, labels that other pods than the exporter's have,
	// too: of these the one that declares the port is the exporter's. Empty: no label is shared.
	SharedPods string
	// Local takes the place of the exporter; nil: pages are fetched.
	Local *Local
}

// Telemetry are a receiver's own metrics.
type Telemetry struct {
	Devices     metric.Int64UpDownCounter // on the newest page of all targets together
	RowsRefused metric.Int64Counter       // by exporter, reason and receiver
	Scrapes     metric.Int64Counter       // by outcome
	// Unknown are fields of the newest pages that may have a quantity which the page lacks.
	Unknown  metric.Int64UpDownCounter
	Shutdown func()
}

// Receiver scrapes the exporters that are configured or discovered.
type Receiver struct {
	set      receiver.Settings
	cfg      *Config
	exporter *Exporter
	scraper  *scraper
	targets  *targets           // nil until Start
	stop     context.CancelFunc // likewise
}

var _ receiver.Metrics = (*Receiver)(nil)

// NewReceiver returns a receiver, given a configuration that Config.Check accepts. scope
// is the instrumentation scope of what it emits.
func NewReceiver(e *Exporter, set receiver.Settings, cfg *Config, own Telemetry, scope string, next consumer.Metrics) (*Receiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &Receiver{
		set: set, cfg: cfg, exporter: e,
		scraper: &scraper{
			exporter:  e,
			next:      next,
			obs:       obs,
			telemetry: own,
			logger:    set.Logger,
			id:        set.ID.String(),
			options: devicemap.Options{
				OTel:         cfg.Names != e.OwnNames,
				AsIs:         cfg.Names != NamesOTel,
				DropUnmapped: cfg.Unmapped == UnmappedDrop,
				NodeName:     cfg.NodeName,
				ClusterName:  cfg.ClusterName,
				ScopeName:    scope,
				ScopeVersion: set.BuildInfo.Version,
				FrozenAfter:  cfg.FrozenAfter,
				FrozenFor:    2 * cfg.ExporterInterval,
				OwnPage:      e.Local != nil,
			},
		},
	}, nil
}

// Start implements component.Component.
func (r *Receiver) Start(context.Context, component.Host) error {
	prom, err := r.cfg.Prometheus(r.exporter)
	if err != nil {
		return err
	}
	job := prom.ScrapeConfigs[0] // the others differ in name and endpoint alone
	r.scraper.fetcher, err = newFetcher(job, r.set.BuildInfo.Command+"/"+r.set.BuildInfo.Version)
	if err != nil {
		return err
	}
	r.scraper.pages = pageOptions(job)
	r.scraper.pages.MaxLabels, r.scraper.pages.MaxLabelBytes = r.cfg.MaxLabels, r.cfg.MaxLabelBytes
	ctx, stop := context.WithCancel(context.Background())
	limit := int(job.TargetLimit)
	if r.cfg.Kubernetes == nil {
		limit = 0 // a job is one endpoint: there is nothing to discover
	}
	targets := newTargets(ctx, r.scraper, r.cfg.CollectionInterval, limit, r.set.ID.String())
	if r.cfg.Kubernetes != nil {
		discoverer, err := newDiscoverer(job, r.set.Logger, targets.set)
		if err != nil {
			stop()
			return err
		}
		targets.wg.Go(func() { discoverer.run(ctx) })
	} else {
		var locations []location
		if r.exporter.Local != nil {
			locations = append(locations, r.exporter.Local.location(job.JobName))
		}
		for i, endpoint := range r.cfg.Endpoints {
			u, err := fetch.Address(endpoint)
			if err != nil { // Check has refused it
				continue
			}
			locations = append(locations, locate(u, prom.ScrapeConfigs[i].JobName))
		}
		targets.set(locations)
	}
	r.targets, r.stop = targets, stop
	return nil
}

func pageOptions(job *promconfig.ScrapeConfig) pagetext.Options {
	return pagetext.Options{
		Relabel:         job.MetricRelabelConfigs,
		Samples:         int(job.SampleLimit),
		Labels:          int(job.LabelLimit),
		LabelNameBytes:  int(job.LabelNameLengthLimit),
		LabelValueBytes: int(job.LabelValueLengthLimit),
	}
}

// Shutdown implements component.Component.
func (r *Receiver) Shutdown(ctx context.Context) error {
	var err error
	if r.targets != nil {
		r.stop()
		err = r.targets.wait(ctx)
		r.scraper.fetcher.close()
		r.targets = nil
	}
	r.scraper.telemetry.Shutdown()
	return err
}
