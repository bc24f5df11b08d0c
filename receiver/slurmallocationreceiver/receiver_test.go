// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/slurmallocationreceiver/internal/metadata"
)

func uuid(n int) string { return fmt.Sprintf("GPU-be839661-c0f5-7452-284b-%012d", n) }

// root has boards of NVIDIA in the order of their addresses: by their minors.
func root(t *testing.T, minors ...int) string {
	t.Helper()
	folder := t.TempDir()
	for i, minor := range minors {
		write(t, filepath.Join(folder, fmt.Sprintf("proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16+i)),
			fmt.Sprintf("Model: \t\t NVIDIA H100\nGPU UUID: \t %s\nDevice Minor: \t %d\n", uuid(minor), minor))
	}
	return folder
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

type run struct {
	cfg  *Config
	sink consumertest.MetricsSink
	logs *observer.ObservedLogs
}

// start runs the receiver with a fake clock. The job map is of an hour ago.
func start(t *testing.T, change func(*Config)) *run {
	t.Helper()
	r := &run{cfg: createDefaultConfig().(*Config)}
	r.cfg.Directory, r.cfg.NodeName, r.cfg.Watch = filepath.Join(t.TempDir(), "jobs"), "n1", false
	r.cfg.RootPath = root(t, 0, 1)
	require.NoError(t, os.MkdirAll(filepath.Join(r.cfg.Directory, "names"), 0o755))
	if change != nil {
		change(r.cfg)
	}
	require.NoError(t, r.cfg.Validate())
	core, logs := observer.New(zap.InfoLevel)
	r.logs = logs
	set := receivertest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	made, err := NewFactory().CreateMetrics(t.Context(), set, r.cfg, &r.sink)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, made.Shutdown(t.Context())) })
	synctest.Wait()
	return r
}

func (r *run) job(t *testing.T, id int, more string) {
	t.Helper()
	text := fmt.Sprintf(`{"v":1,"job":%d,"uid":%d,"user":"ada","account":"physics","partition":"gpu","qos":"normal","cluster":"hpc","restarts":0,"comment":""%s}`, id, os.Getuid(), more)
	path := filepath.Join(r.cfg.Directory, fmt.Sprintf("%d.json", id))
	write(t, path, text)
	require.NoError(t, os.Chtimes(path, time.Now(), time.Now()))
}

// last are the points of the newest batch, one line each.
func (r *run) last(metric string) []string {
	all := r.sink.AllMetrics()
	if len(all) == 0 {
		return nil
	}
	var out []string
	for _, rm := range all[len(all)-1].ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != metric {
				continue
			}
			p := m.Sum().DataPoints()
			for i := range p.Len() {
				line := points.Str(rm.Resource().Attributes(), names.SlurmJobID)
				if s := points.Str(rm.Resource().Attributes(), names.ServiceName); s != "" {
					line += " " + points.Str(rm.Resource().Attributes(), names.ServiceNamespace) + "/" + s
				}
				if p.At(i).Flags().NoRecordedValue() {
					line += " ended"
				} else {
					line += fmt.Sprintf(" %g", points.Value(p.At(i)))
				}
				for k, v := range p.At(i).Attributes().All() {
					if k != names.K8sNodeName && k != names.GPUAttributionSource && !(v.Type() == pcommon.ValueTypeBool && v.Bool()) && v.AsString() != names.SharingNone {
						line += " " + strings.TrimPrefix(v.AsString(), "GPU-be839661-c0f5-7452-284b-0000000000")
					}
				}
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return out
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAJobBeginsIsNamedAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.AllDevices, c.CollectionInterval = true, time.Minute })
		assert.Equal(t, []string{"0 00", "0 01"}, r.last("gpu.allocation"))
		r.job(t, 4711, `,"gpus":"1"`)
		after(5 * time.Second)
		assert.Equal(t, []string{"0 00", "4711 1 01"}, r.last("gpu.allocation"))
		assert.Equal(t, []string{"4711 1 normal 0"}, r.last("slurm.job.info"))

		name := filepath.Join(r.cfg.Directory, "names", "4711")
		write(t, name, "train\n4700\n7\n")
		require.NoError(t, os.Chtimes(name, time.Now(), time.Now()))
		after(5 * time.Second)
		assert.Equal(t, []string{"0 00", "4711 physics/ada/train 1 01"}, r.last("gpu.allocation"))
		assert.ElementsMatch(t, []string{"4711 ended normal 0", "4711 physics/ada/train 1 train 4700 7 normal 0"}, r.last("slurm.job.info"))

		write(t, name, "other\n4700\n8\n")
		after(time.Minute)
		assert.Equal(t, []string{"4711 physics/ada/train 1 train 4700 7 normal 0"}, r.last("slurm.job.info"), "the first name of a run counts")

		require.NoError(t, os.Remove(filepath.Join(r.cfg.Directory, "4711.json")))
		after(5 * time.Second)
		assert.Equal(t, []string{"0 00", "0 01"}, r.last("gpu.allocation"))
		assert.Len(t, r.last("slurm.job.info"), 1)
		assert.Empty(t, r.logs.All())
	})
}

func TestNameThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, nil)
		r.job(t, 1, `,"gpus":"0"`)
		after(85 * time.Second)
		assert.Equal(t, []string{"1 1 00"}, r.last("gpu.allocation"))
		after(15 * time.Second)
		assert.Equal(t, []string{"1 physics/ada/gpu 1 00"}, r.last("gpu.allocation"))
	})
}

func TestAFolderThatGoesAwayIsNotFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.AllDevices = true })
		require.NoError(t, os.RemoveAll(r.cfg.Directory))
		after(time.Minute)
		n := len(r.sink.AllMetrics())
		after(time.Minute)
		assert.Len(t, r.sink.AllMetrics(), n, "nothing is known")
		assert.Equal(t, 1, r.logs.FilterMessageSnippet("cannot be read").Len())
		require.NoError(t, os.Mkdir(r.cfg.Directory, 0o755))
		after(5 * time.Second)
		assert.Len(t, r.sink.AllMetrics(), n+1)
		assert.Equal(t, 1, r.logs.FilterMessage("the job map can be read again").Len())
	})
}

func TestAFolderThatOthersMayChangeStopsTheStart(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Directory = t.TempDir()
	require.NoError(t, os.Chmod(cfg.Directory, 0o777))
	made, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, consumertest.NewNop())
	require.NoError(t, err)
	err = made.Start(t.Context(), componenttest.NewNopHost())
	require.NoError(t, made.Shutdown(t.Context()))
	assert.ErrorContains(t, err, "directory: ")
	assert.ErrorContains(t, err, "chmod go-w")
}

func TestChangesAreSeenWithoutAPoll(t *testing.T) {
	r := &run{cfg: createDefaultConfig().(*Config)}
	r.cfg.Directory, r.cfg.NodeName, r.cfg.RootPath = filepath.Join(t.TempDir(), "jobs"), "n1", root(t, 0)
	r.cfg.PollInterval, r.cfg.CollectionInterval = time.Minute, time.Minute
	require.NoError(t, os.MkdirAll(r.cfg.Directory, 0o755))
	made, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), r.cfg, &r.sink)
	require.NoError(t, err)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, made.Shutdown(t.Context())) }()
	require.Eventually(t, func() bool { return len(r.sink.AllMetrics()) == 1 }, 10*time.Second, 10*time.Millisecond)
	r.job(t, 1, `,"gpus":"0"`)
	require.Eventually(t, func() bool { return len(r.last("gpu.allocation")) == 1 && r.last("gpu.allocation")[0] == "1 1 00" }, 10*time.Second, 10*time.Millisecond)
}
