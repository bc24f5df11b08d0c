// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package dcgmreceiver

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"sync"

	"github.com/prometheus/prometheus/scrape"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/mapping"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/metadata"
)

// pageConsumer takes one scrape at a time from prometheusreceiver, which calls
// it from one goroutine a target, several targets at once.
type pageConsumer struct {
	next      consumer.Metrics
	obs       *receiverhelper.ObsReport
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	options   mapping.Options

	mu      sync.Mutex
	targets map[string]*target
}

// target is one exporter: its state, and what was last said about it.
type target struct {
	mu       sync.Mutex // a reload can let two scrapes of one target overlap
	mapping  *mapping.Target
	scrapes  story
	pipeline story
	devices  int
}

func (*pageConsumer) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics maps one scrape. It gives an error only where next does:
// prometheusreceiver would call the scrape failed.
func (c *pageConsumer) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	at := locate(ctx, md)
	t := c.target(at.key)
	result := c.read(ctx, t, at, md)
	if result.Gone {
		c.forget(at.key)
	}
	points := result.Metrics.DataPointCount()
	if points == 0 {
		return nil
	}
	ctx = c.obs.StartMetricsOp(ctx)
	err := c.next.ConsumeMetrics(ctx, result.Metrics)
	c.obs.EndMetricsOp(ctx, "prometheus", points, err)
	t.tellPipeline(c.logger.With(zap.String("exporter", at.name)), err)
	return err
}

// read maps a scrape, and counts and tells what came of it.
func (c *pageConsumer) read(ctx context.Context, t *target, at location, md pmetric.Metrics) mapping.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	result := t.mapping.Map(md, at.exporter)
	if result.Known && !result.Gone {
		outcome, err := classify(result, at.err)
		c.telemetry.DcgmReceiverScrapes.Add(ctx, 1, withAttribute("outcome", string(outcome)))
		t.tellScrape(c.logger.With(zap.String("exporter", at.name)), outcome, err, result.Devices)
	}
	for reason, n := range result.Refused {
		if n > 0 {
			c.telemetry.DcgmReceiverRowsRefused.Add(ctx, int64(n), withAttribute("reason", mapping.Reason(reason).String()))
		}
	}
	if result.Known {
		c.telemetry.DcgmReceiverDevices.Add(ctx, int64(result.Devices-t.devices))
		t.devices = result.Devices
	}
	return result
}

// leftOut counts samples that prometheusreceiver left out.
func (c *pageConsumer) leftOut(why mapping.Reason, samples int64) {
	c.telemetry.DcgmReceiverRowsRefused.Add(context.Background(), samples, withAttribute("reason", why.String()))
}

func withAttribute(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

func (c *pageConsumer) target(key string) *target {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.targets[key]
	if t == nil {
		t = &target{mapping: mapping.NewTarget(c.options)}
		c.targets[key] = t
	}
	return t
}

func (c *pageConsumer) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.targets, key)
}

// location says which target a scrape is from.
type location struct {
	key      string // identity among targets
	name     string // for people, without secrets
	exporter mapping.Exporter
	err      error // of the last scrape
}

// locate asks the scrape's context for its target. prometheusreceiver's resource
// is the second source: it leaves loopback addresses out.
func locate(ctx context.Context, md pmetric.Metrics) location {
	var l location
	var u *url.URL
	if target, ok := scrape.TargetFromContext(ctx); ok {
		u, l.err = target.URL(), target.LastError()
	}
	attrs := pcommon.NewMap()
	if md.ResourceMetrics().Len() > 0 {
		attrs = md.ResourceMetrics().At(0).Resource().Attributes()
	}
	if node, ok := attrs.Get(names.K8sNodeName); ok {
		l.exporter.Node = node.Str()
	}
	if pod, ok := attrs.Get(names.K8sPodName); ok {
		l.exporter.Pod = pod.Str()
	}
	if u == nil {
		u = &url.URL{Scheme: "http"}
		if instance, ok := attrs.Get("service.instance.id"); ok {
			u.Host = instance.AsString()
		}
	}
	l.key = u.String()
	l.name = u.Scheme + "://" + u.Host + u.Path
	l.exporter.Address, l.exporter.Port = hostPort(u)
	return l
}

func hostPort(u *url.URL) (string, int64) {
	if port, err := strconv.ParseInt(u.Port(), 10, 64); err == nil {
		return u.Hostname(), port
	}
	port, err := net.LookupPort("tcp", u.Scheme)
	if err != nil {
		port = 0
	}
	return u.Hostname(), int64(port)
}
