// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadata"
	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/metadatatest"
)

// watchPatience bounds how long a test waits for something that has to happen.
const watchPatience = 20 * time.Second

// watchTest is a watch over a folder that hands what it applies to the test.
type watchTest struct {
	*Watch
	*folder
	logs    *observer.ObservedLogs
	tel     *componenttest.Telemetry
	applied chan string
}

func newWatchTest(t *testing.T, fixed ...string) *watchTest {
	core, logs := observer.New(zapcore.DebugLevel)
	tel := componenttest.NewTelemetry()
	builder, err := metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
	require.NoError(t, err)
	var targets []*endpoint.Endpoint
	for _, name := range fixed {
		target, err := endpoint.New(name, endpoint.Config{URL: configopaque.String("https://" + name + ".example.com/")}, endpoint.Defaults{})
		require.NoError(t, err)
		targets = append(targets, target)
	}
	w := NewWatch(t.TempDir(), targets, openGuard(t), endpoint.Defaults{}, builder, zap.New(core))
	w.Settle, w.Poll = 20*time.Millisecond, 100*time.Millisecond
	t.Cleanup(func() {
		w.Shutdown()
		builder.Shutdown()
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return &watchTest{w, &folder{w.dir, t}, logs, tel, make(chan string, 1000)}
}

func (w *watchTest) begin() {
	w.t.Helper()
	require.NoError(w.t, w.Load(context.Background(), func(_ context.Context, targets []*endpoint.Endpoint) {
		var all []string
		for _, target := range targets {
			all = append(all, target.Name+"="+target.Host+target.URL.Path)
		}
		w.applied <- strings.Join(all, " ")
	}))
	w.Follow()
}

// replace replaces the file by a rename, as one should.
func (w *watchTest) replace(name, content string) {
	w.t.Helper()
	w.write(".new", content)
	require.NoError(w.t, os.Rename(filepath.Join(w.path, ".new"), filepath.Join(w.path, name)))
}

func (w *watchTest) wants(want string) {
	w.t.Helper()
	select {
	case got := <-w.applied:
		assert.Equal(w.t, want, got)
	case <-time.After(watchPatience):
		w.t.Fatalf("never applied: %s", want)
	}
}

// logged waits for the log line.
func (w *watchTest) logged(snippet string, times int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.logs.FilterMessageSnippet(snippet).Len() >= times }, watchPatience, 5*time.Millisecond)
	assert.Equal(w.t, times, w.logs.FilterMessageSnippet(snippet).Len())
}

func TestFilesComeAndGo(t *testing.T) {
	for name, poll := range map[string]time.Duration{"the file system notifies": time.Hour, "found by reading": 30 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			w := newWatchTest(t, "fixed")
			w.Poll = poll
			if poll != time.Hour {
				w.Settle = time.Nanosecond
			}
			w.replace("ops", "https://one.example.com/")
			w.begin()
			w.wants("fixed=fixed.example.com/ ops=one.example.com/")
			w.replace("ops", "https://two.example.com/")
			w.wants("fixed=fixed.example.com/ ops=two.example.com/")
			w.replace("another", `{"url": "https://another.example.com/"}`)
			w.wants("fixed=fixed.example.com/ another=another.example.com/ ops=two.example.com/")
			w.remove("ops")
			w.wants("fixed=fixed.example.com/ another=another.example.com/")
			w.replace("fixed", "https://evil.example.com/")
			w.logged("is skipped", 1)
			w.remove("another")
			w.wants("fixed=fixed.example.com/")
			w.Shutdown()
			w.replace("late", "https://late.example.com/")
			assert.Empty(t, w.applied)
		})
	}
}

func TestKeyIsRotatedAndSpacesAreNoChange(t *testing.T) {
	w := newWatchTest(t)
	signed := func(key string) string {
		return fmt.Sprintf(`{"url": "https://ops.example.com/", "signing": {"standard": [%q]}}`, key)
	}
	w.replace("ops", signed(goodKey))
	w.begin()
	w.wants("ops=ops.example.com/")
	w.replace("ops", signed(goodKey)+"\n\n")
	w.replace("other", "https://other.example.com/1")
	w.wants("ops=ops.example.com/ other=other.example.com/1") // not once more for the line feeds
	w.replace("ops", signed(otherKey))
	w.wants("ops=ops.example.com/ other=other.example.com/1")
	w.replace("ops", signed("whsec_SECRET"))
	w.logged("stays as it was", 1)
	assert.Empty(t, w.applied)
	for _, line := range w.logs.All() {
		assert.NotContains(t, fmt.Sprint(line.ContextMap()), "SECRET")
		assert.NotContains(t, fmt.Sprint(line.ContextMap()), "ops.example.com")
	}
}

func TestFolderThatGoesAndComesBack(t *testing.T) {
	w := newWatchTest(t)
	w.write("ops", "https://one.example.com/")
	w.begin()
	w.wants("ops=one.example.com/")
	require.NoError(t, os.Rename(w.path, w.path+".gone"))
	w.logged("cannot be read; the last known receivers are kept", 1)
	assert.Empty(t, w.applied, "the receivers stay")

	require.NoError(t, os.Mkdir(w.path, 0o700))
	w.replace("ops", "https://two.example.com/")
	w.wants("ops=two.example.com/")
	w.logged("can be read again", 1)
	w.replace("ops", "https://three.example.com/")
	w.wants("ops=three.example.com/")
	metadatatest.AssertEqualExporterWebhookReceiverFilesSkipped(t, w.tel,
		[]metricdata.DataPoint[int64]{{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "missing_folder"))}},
		metricdatatest.IgnoreTimestamp())
}

func TestStartWithoutFolder(t *testing.T) {
	w := newWatchTest(t)
	w.dir.path = filepath.Join(w.path, "nowhere")
	err := w.Load(context.Background(), func(context.Context, []*endpoint.Endpoint) { t.Error("nothing is there to apply") })
	assert.ErrorContains(t, err, "receivers_dir: ")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestEmptyFolderIsLogged(t *testing.T) {
	w := newWatchTest(t)
	w.begin()
	w.wants("")
	w.logged("there is no receiver yet", 1)
	w.replace("ops", "https://ops.example.com/")
	w.wants("ops=ops.example.com/")
}

func TestSkippedFilesAreCountedOnceForEachCause(t *testing.T) {
	w := newWatchTest(t)
	for name, content := range map[string]string{"a": "", "b": "{", "c": "{", "d": "{}", "e": "ftp://x", "f": "https://f.example.com/"} {
		w.write(name, content)
	}
	w.begin()
	w.wants("f=f.example.com/")
	for i := range 3 {
		w.replace("f", fmt.Sprintf("https://f.example.com/%d", i))
		w.wants(fmt.Sprintf("f=f.example.com/%d", i))
	}
	w.logged("is skipped", 5)
	point := func(reason string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("reason", reason))}
	}
	metadatatest.AssertEqualExporterWebhookReceiverFilesSkipped(t, w.tel, []metricdata.DataPoint[int64]{
		point("empty_value", 1), point("invalid_json", 2), point("empty_url_in_json", 1), point("invalid_receiver", 1),
	}, metricdatatest.IgnoreTimestamp())
}

// Write access to the folder must not suffice to fill the log.
func TestFaultsDoNotFillTheLog(t *testing.T) {
	w := newWatchTest(t)
	for i := range 2000 {
		w.write(fmt.Sprintf("f%d", i), "{")
	}
	w.begin()
	w.wants("")
	assert.Less(t, w.logs.FilterMessageSnippet("is skipped").Len(), 200)
	metadatatest.AssertEqualExporterWebhookReceiverFilesSkipped(t, w.tel,
		[]metricdata.DataPoint[int64]{{Value: 2000, Attributes: attribute.NewSet(attribute.String("reason", "invalid_json"))}},
		metricdatatest.IgnoreTimestamp())
}
