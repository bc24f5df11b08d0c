// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"

	promconfig "github.com/prometheus/prometheus/config"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/exporterpage"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// dcgmReceiver scrapes the exporters that are configured or discovered.
type dcgmReceiver struct {
	set     receiver.Settings
	cfg     *Config
	scraper *scraper
	targets *targets           // nil until Start
	stop    context.CancelFunc // likewise
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Metrics) (*dcgmReceiver, error) {
	obs, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &dcgmReceiver{
		set: set,
		cfg: cfg,
		scraper: &scraper{
			next:      next,
			obs:       obs,
			telemetry: telemetry,
			logger:    set.Logger,
			id:        set.ID.String(),
			options: devicemap.Options{
				OTel:         cfg.Names != NamesDCGM,
				AsIs:         cfg.Names != NamesOTel,
				DropUnmapped: cfg.Unmapped == UnmappedDrop,
				NodeName:     cfg.NodeName,
				ClusterName:  cfg.ClusterName,
				ScopeName:    metadata.ScopeName,
				ScopeVersion: set.BuildInfo.Version,
				FrozenAfter:  cfg.FrozenAfter,
				FrozenFor:    2 * cfg.ExporterInterval,
			},
		},
	}, nil
}

func (r *dcgmReceiver) Start(context.Context, component.Host) error {
	prom, err := r.cfg.promConfig()
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
		for i, endpoint := range r.cfg.Endpoints {
			u, err := exporterpage.Address(endpoint)
			if err != nil { // Validate has refused it
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

func (r *dcgmReceiver) Shutdown(ctx context.Context) error {
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
