// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package delivery

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

type m = map[string]any

// setup is what an exporter is measured with.
type setup struct {
	receivers int
	tls       bool
	storage   bool // with retry
	audit     bool // a file
	path      string
	hanging   bool // the last receiver never answers
	limits    m    // of the receiver that hangs
}

var (
	diskID   = component.MustNewIDWithName("file_storage", "bench")
	keeperID = component.MustNewIDWithName("keeper", "bench")
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// keeper counts what becomes of deliveries.
type keeper struct {
	component.StartFunc
	component.ShutdownFunc
	succeeded, others atomic.Int64
}

func (k *keeper) KeepAudit(_ uint64, r *audit.Record) {
	if r.Outcome == audit.Succeeded {
		k.succeeded.Add(1)
	} else {
		k.others.Add(1)
	}
}

// subject is an exporter that runs.
type subject struct {
	exporter.Logs
	*keeper
	hanging bool
	stop    func()
}

// start starts an exporter as the Collector does, but for its log, which is
// written to nowhere.
func start(tb testing.TB, s setup) *subject {
	tb.Helper()
	folder := tb.TempDir()
	scheme, addresses := "http://", theReceivers.Plain
	if s.tls {
		scheme, addresses = "https://", theReceivers.TLS
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	list := m{}
	for i, address := range addresses[:s.receivers] {
		r := m{"url": scheme + address + s.path, "signing": m{"standard": []any{secret}}}
		if s.hanging && i == s.receivers-1 {
			r["url"] = scheme + address + hangPath
			maps.Copy(r, s.limits)
		}
		list[fmt.Sprintf("r%02d", i)] = r
	}
	sub := &subject{keeper: &keeper{}, hanging: s.hanging}
	extensions := host{keeperID: sub.keeper}
	trail := m{"store": keeperID.String()}
	config := m{"receivers": list, "allow_cidrs": []any{loopback + "/32"}, "audit": trail}
	closeDisk := func() {}
	if s.storage {
		disk := fileStorage(tb, filepath.Join(folder, "storage"))
		extensions[diskID] = disk
		closeDisk = func() { require.NoError(tb, disk.Shutdown(context.Background())) }
		config["storage"] = diskID.String()
		config["retry"] = m{"enabled": true, "initial_interval": "1s"}
	}
	if s.audit {
		trail["path"] = filepath.Join(folder, "audit.jsonl")
	}
	factory := webhookexporter.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(config).Unmarshal(cfg))
	telemetry := componenttest.NewTelemetry()
	set := exportertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	set.Logger = zap.New(zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zap.InfoLevel))
	var err error
	sub.Logs, err = factory.CreateLogs(context.Background(), set, cfg)
	require.NoError(tb, err)
	require.NoError(tb, sub.Start(context.Background(), extensions))
	sub.stop = func() {
		// Nothing is waited for but what is done anyway.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.NoError(tb, sub.Shutdown(ctx))
		require.NoError(tb, telemetry.Shutdown(context.Background()))
		closeDisk()
	}
	return sub
}

func fileStorage(tb testing.TB, folder string) extension.Extension {
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.CreateDirectory = folder, true
	require.NoError(tb, cfg.Validate())
	ext, err := factory.Create(context.Background(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(tb, err)
	require.NoError(tb, ext.Start(context.Background(), componenttest.NewNopHost()))
	return ext
}

// send hands over one event, as gpu_events makes them, that nothing has to wait
// for.
func (s *subject) send(tb testing.TB, n int) {
	now := time.Now()
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	resource := rl.Resource().Attributes()
	resource.PutStr(names.K8sClusterName, "production")
	resource.PutStr(names.K8sNamespaceName, "inference")
	resource.PutStr(names.ServiceName, "chat")
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetTimestamp(pcommon.NewTimestampFromTime(now))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	record.SetSeverityNumber(plog.SeverityNumberWarn)
	record.SetEventName(names.EventServicePartial)
	record.Body().SetStr("Service chat in namespace inference of cluster production is partial: 2 of 4 settled pods are missing (chat-0, chat-2).")
	attrs := record.Attributes()
	attrs.PutStr(names.GPUEventID, eventID(now, n))
	attrs.PutStr(names.GPUEventKey, fmt.Sprintf("%s/production/inference/chat-%d", names.EventServicePartial, n))
	attrs.PutStr(names.GPUEventState, "raised")
	attrs.PutInt(names.GPUServiceMissingPodCount, 2)
	attrs.PutDouble(names.GPUServiceMissingRatio, 0.5)
	missing := attrs.PutEmptySlice(names.GPUServiceMissingPods)
	missing.AppendEmpty().SetStr("chat-0")
	missing.AppendEmpty().SetStr("chat-2")
	require.NoError(tb, s.ConsumeLogs(context.Background(), logs))
}

// flood hands over events so that every receiver has deliveries to make at any
// time, and returns when all are delivered.
func (s *subject) flood(tb testing.TB, events, receivers int) {
	const ahead = 20 // events
	for n := range events {
		for int64(n*receivers)-s.succeeded.Load() > ahead*int64(receivers) {
			time.Sleep(500 * time.Microsecond)
		}
		s.send(tb, n)
	}
	for s.succeeded.Load() < int64(events*receivers) {
		time.Sleep(500 * time.Microsecond)
	}
	require.Zero(tb, s.others.Load(), "deliveries that failed")
}
