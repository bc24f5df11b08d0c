// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package appguardprocessor // import "github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor"

import (
	"context"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/logonce"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/guard"
	"github.com/otelcol-gpu/otelcol-gpu/processor/appguardprocessor/internal/metadata"
)

// Reasons beside those of the guard.
const (
	notTheirs guard.Verdict = "reserved"
	noName    guard.Verdict = "no_name"
	tooLarge  guard.Verdict = "too_large"
	unusable  guard.Verdict = "unusable"
)

const (
	// maxCauses bounds the causes that are logged: a sender and a reason each.
	maxCauses = 100
	// maxText bounds what a sender chose and the log shows, in runes.
	maxText = 256
)

// base is what the three signals share. Batches may arrive concurrently; the lock
// covers the work on one batch in memory, never a log line or the next consumer.
type base struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time

	mu     sync.Mutex
	guard  *guard.Guard
	logged logonce.Causes
}

// cause is what is logged once.
type cause struct {
	sender string
	reason guard.Verdict
}

func newBase(cfg *Config, set processor.Settings) (*base, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &base{
		config: cfg, logger: set.Logger, telemetry: telemetry, now: time.Now,
		guard: guard.New(guard.Limits{
			Series: cfg.MaxSeries, SeriesPerSender: cfg.MaxSeriesPerSender, ItemsPerMinute: cfg.MaxPointsPerMinutePerSender,
		}),
		logged: logonce.Causes{Most: maxCauses},
	}, nil
}

// Start implements component.Component.
func (*base) Start(context.Context, component.Host) error { return nil }

// Shutdown implements component.Component.
func (b *base) Shutdown(context.Context) error {
	b.telemetry.Shutdown()
	return nil
}

// Capabilities reports that batches are changed in place.
func (*base) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// batch is what became of one batch.
type batch struct {
	*base
	peer    string
	at      time.Time
	sent    map[string]*guard.Sent // by sender
	dropped map[guard.Verdict]int64
	causes  map[cause]string // the first name that was dropped
	renamed int64
}

func (b *base) begin(ctx context.Context) *batch {
	return &batch{base: b, peer: peer(ctx), at: b.now(), sent: map[string]*guard.Sent{}}
}

// from returns the sender of a resource and its name.
func (b *batch) from(resource pcommon.Map) (name string, sender *guard.Sender) {
	name = b.sender(resource)
	sender = b.guard.Sender(name, b.at)
	sent := b.sent[name]
	if sent == nil {
		sent = &guard.Sent{}
		b.sent[name] = sent
	}
	sender.Note(sent)
	return name, sender
}

// peer is the address that a batch came from, without its port.
func peer(ctx context.Context) string {
	addr := client.FromContext(ctx).Addr
	if addr == nil {
		return "unknown"
	}
	if host, _, err := net.SplitHostPort(addr.String()); err == nil {
		return host
	}
	return addr.String()
}

// sender is the name of who sent a resource: its pod, else the address.
func (b *batch) sender(resource pcommon.Map) string {
	pod := points.Str(resource, names.K8sPodName)
	if pod == "" {
		return b.peer
	}
	if namespace := points.Str(resource, names.K8sNamespaceName); namespace != "" {
		pod = namespace + "/" + pod
	}
	return safetext.Strip(pod, maxText)
}

// drop notes that n items were dropped, and whether that is to be logged.
func (b *batch) drop(sender string, reason guard.Verdict, n int64, example string) {
	if n == 0 {
		return
	}
	if b.dropped == nil {
		b.dropped, b.causes = map[guard.Verdict]int64{}, map[cause]string{}
	}
	b.dropped[reason] += n
	c := cause{sender, reason}
	if b.logged.First(string(reason)+" "+sender, b.at) {
		b.causes[c] = example
	}
}

// pass logs what was dropped, sends what is left, if anything is, and counts both. A batch
// that the next component refuses counts for nothing where the sender sends it again.
func (b *batch) pass(ctx context.Context, counter metric.Int64Counter, what string, left int, send func() error) error {
	for c, example := range b.causes {
		b.logger.Warn("telemetry of an application is dropped; logged once for each sender and reason",
			zap.String("what", what), zap.String("sender", c.sender), zap.String("reason", string(c.reason)),
			zap.String("remedy", remedies[c.reason]), zap.String("example", safetext.Strip(example, maxText)))
	}
	var err error
	if left > 0 {
		err = send()
	}
	if err != nil && !consumererror.IsPermanent(err) {
		b.mu.Lock()
		for name, sent := range b.sent {
			b.guard.GiveBack(name, sent, b.at)
		}
		b.mu.Unlock()
		return err
	}
	for reason, n := range b.dropped {
		counter.Add(ctx, n, metric.WithAttributes(attribute.String("reason", string(reason))))
	}
	if b.renamed > 0 {
		b.telemetry.AppGuardAttributesRenamed.Add(ctx, b.renamed)
	}
	return err
}

var remedies = map[guard.Verdict]string{
	notTheirs:                "rename it at the sender: the name belongs to GPU telemetry, the inference processor, recording rules, the Collector or Prometheus",
	noName:                   "name it at the sender, with letters",
	unusable:                 "name attributes with letters, each label once, in UTF-8; histograms need as many observations as their buckets have, and a scale of -4 or more",
	tooLarge:                 "shorten names and labels at the sender",
	guard.Ambiguous:          "write name, type, unit and attributes in one way at the sender: in Prometheus they are one series",
	guard.OverRate:           "send less often, or raise max_points_per_minute_per_sender",
	guard.OverSeriesOfSender: "take labels with many values off at the sender, or raise max_series_per_sender",
	guard.OverSeries:         "take labels with many values off at the senders, or raise max_series",
}
