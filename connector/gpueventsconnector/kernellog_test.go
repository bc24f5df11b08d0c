// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

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
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-gpu/otelcol-gpu/connector/gpueventsconnector/internal/kernellog"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/xid"
)

// kernel are log records of a node with these lines.
func kernel(node string, lines ...string) plog.Logs {
	logs := plog.NewLogs()
	rl := logs.ResourceLogs().AppendEmpty()
	if node != "" {
		rl.Resource().Attributes().PutStr(names.K8sNodeName, node)
	}
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for i, line := range lines {
		r := records.AppendEmpty()
		r.Body().SetStr(line)
		r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(time.Duration(i-len(lines)+1) * time.Microsecond)))
	}
	return logs
}

// write passes log records in and returns the events, as "code occurrences action".
func (b *bench) write(logs plog.Logs) (all []string) {
	b.t.Helper()
	b.sink.Reset()
	require.NoError(b.t, b.c.ConsumeLogs(b.t.Context(), logs))
	return xids(b.events())
}

func xids(events []occurred) (all []string) {
	for _, e := range events {
		if e.record.EventName() == names.EventXID {
			all = append(all, fmt.Sprintf("%v %v %v", e.attrs[names.GPUXIDCode], e.attrs[names.GPUEventOccurrences], e.attrs[names.GPUHealthAction]))
		}
	}
	return all
}

// outcomes are the lines that were read, by what became of them.
func (b *bench) outcomes() map[kernellog.Outcome]int64 {
	b.t.Helper()
	all := map[kernellog.Outcome]int64{}
	m, err := b.tel.GetMetric("otelcol_gpu_events_kernel_lines")
	require.NoError(b.t, err)
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		outcome, _ := p.Attributes.Value("outcome")
		all[kernellog.Outcome(outcome.AsString())] = p.Value
	}
	return all
}

// startWithLog is start with a connector that reads logs too.
func startWithLog(t *testing.T, change ...func(*Config)) *bench {
	b := start(t, append(change, deviceSet)...)
	b.readLog()
	return b
}

// readLog makes the connector one that reads logs too.
func (b *bench) readLog() {
	b.c.feeders[fromLogs] = b.c
	b.c.engine.ExpectLines()
}

func pageOfTwo(last float64) pmetric.Metrics {
	values := map[*names.Metric]float64{&names.GPUXIDLast: last, &names.HwEnergy: float64(time.Now().Unix())}
	return scrape(page{at: time.Now(), node: "n1", gpus: []gpu{
		{id: gpuA, pci: "00000000:3B:00.0", pod: "chat-0", values: values}, {id: "GPU-b", pci: "0000:5e:00.0", values: map[*names.Metric]float64{&names.GPUXIDLast: 0}},
	}})
}

const line79 = "[  100.000200] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."

// A line is an event at once, and decides the health of its board. The same XID on the
// next page raises no second event; another one on a later page does.
func TestKernelLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t, withHealth, func(cfg *Config) { cfg.Events[names.EventXID]["repeat_after"] = time.Duration(0) })
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		b.sink.Reset()
		require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("n1", "usb 1-1: new device", line79)))
		events := b.events()
		assert.Equal(t, []string{"79 1 reboot_node"}, xids(events))
		assert.Equal(t, []string{"raised: failed [xid_restart] reboot_node"}, healthEvents(events))
		assert.Equal(t, gpuA, events[0].resource[names.HwID])
		assert.Equal(t, "chat-0", events[0].attrs[names.K8sPodName])
		for _, last := range []float64{0, 79, 79} {
			assert.Empty(t, xids(append(b.feed(pageOfTwo(last)), b.wait(15*time.Second)...)))
		}
		b.wait(3 * time.Minute)
		assert.Equal(t, []string{"31 1 restart_app"}, xids(append(b.feed(pageOfTwo(31)), b.wait(15*time.Second)...)), "of the page alone")
		assert.Empty(t, b.write(kernel("n1", "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008")), "the page was first")
		time.Sleep(time.Second)
		assert.Equal(t, []string{"31 1 restart_app"}, b.write(kernel("n1", "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python3, Ch 00000008")), "once more")
		assert.Equal(t, map[kernellog.Outcome]int64{kernellog.Other: 1, kernellog.Used: 3}, b.outcomes())
	})
}

// The driver names the instance of a board in MIG mode, which has the count on the page.
func TestKernelLineOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t)
		mig := func(last float64) pmetric.Metrics {
			return scrape(page{at: time.Now(), node: "n1", gpus: []gpu{
				{id: gpuA, pci: "0000:3b:00.0", values: map[*names.Metric]float64{&names.GPUXIDLast: 0}},
				{id: gpuA + "/5", parent: gpuA, values: map[*names.Metric]float64{&names.GPUXIDLast: last}},
			}})
		}
		b.feed(mig(0))
		b.wait(15 * time.Second)
		require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("n1", "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=7, Contained")))
		assert.Equal(t, gpuA+"/5", b.events()[0].resource[names.HwID])
		assert.Empty(t, xids(append(b.feed(mig(94)), b.wait(15*time.Second)...)), "the page has the same XID")
	})
}

// What a line has beside its code is in the event: the process, and the action of the row
// of an NVLink error. Repeats are counted.
func TestKernelLineDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t, withHealth)
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		assert.Equal(t, []string{"145 1 reset_gpu"}, b.write(kernel("",
			"NVRM: Xid (PCI:0000:5e:00): 145, pid=7, name=ray::Worker, RLW_SRC_TRACK Fatal XC1 i0 Link 12 (0x040988e2 0x00000011 0x0 0x0 0x0 0x0)")), "the node is the only one")
		attrs := b.events()[0].attrs
		assert.Equal(t, "ray::Worker", attrs[names.ProcessName])
		assert.Equal(t, int64(7), attrs[names.ProcessPID])
		burst := make([]string, 50)
		for i := range burst {
			burst[i] = "NVRM: Xid (PCI:0000:3B:00): 45, pid=4712, name=server, Ch 00000010"
		}
		assert.Equal(t, []string{"45 50 none"}, b.write(kernel("n1", burst...)), "one event of a batch")
		time.Sleep(time.Second)
		assert.Empty(t, b.write(kernel("n1", burst...)), "for repeat_after")
		assert.Equal(t, []string{"45 50 none"}, xids(b.wait(6*time.Minute)))
	})
}

// The recovery action of a line is a reason until another line, or a reset, ends it.
func TestKernelLineOfARecoveryAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t, withHealth)
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		changed := func(from, to string) []string {
			b.sink.Reset()
			require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("n1", "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from "+from+" to "+to)))
			return healthEvents(b.events())
		}
		assert.Equal(t, []string{"raised: failed [recovery_action] drain_and_reset"}, changed("0x0 (None)", "0x4 (Drain and Reset)"))
		time.Sleep(time.Second)
		assert.Equal(t, []string{"cleared: ok <nil> none"}, changed("0x4 (Drain and Reset)", "0x0 (None)"))
		time.Sleep(time.Second)
		assert.Equal(t, []string{"raised: failed [recovery_action] reboot_node"}, changed("0x0 (None)", "0x2 (Node Reboot Required)"))
	})
}

// What is not used is counted, and lines without a known GPU are logged once.
func TestKernelLinesThatAreNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t)
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		assert.Empty(t, b.write(kernel("n1",
			"NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus",
			"NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus",
			"nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
			"NVRM: Xid (invalid): some error",
			"NVRM: Xid (PCI:0000:3b:00): 79, "+strings.Repeat("x", xid.MaxLine),
		)))
		assert.Empty(t, b.write(kernel("n2", line79)), "another node")
		old := kernel("n1", line79)
		old.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(-time.Hour)))
		assert.Empty(t, b.write(old), "from before the first page")
		b.wait(2 * time.Second)
		many := make([]string, kernellog.MaxPerSecond+5)
		for i := range many {
			many[i] = "NVRM: Xid (PCI:0000:3b:00): 45, pid=4712, name=server"
		}
		assert.Equal(t, []string{"45 1000 none"}, b.write(kernel("n1", many...)))
		assert.Equal(t, map[kernellog.Outcome]int64{
			kernellog.UnknownGPU: 3, kernellog.Switch: 1, kernellog.Invalid: 2, kernellog.Old: 1, kernellog.Used: 1000, kernellog.Refused: 5,
		}, b.outcomes())
		assert.Equal(t, 1, b.logs.FilterMessageSnippet("about GPUs that no exporter of their node has").Len())
	})
}

// An entry of the journal is a map, and names its host.
func TestJournalEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t)
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		for host, want := range map[string][]string{"host-1": {"79 1 reboot_node"}, "host-2": nil} {
			logs := kernel("", "")
			body := logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetEmptyMap()
			body.PutStr("MESSAGE", line79[len("[  100.000200] "):])
			body.PutStr("_HOSTNAME", host)
			assert.Equal(t, want, b.write(logs), host)
		}
	})
}

// Each line of a kernel log is used or counted as what it is, and a GPU that has fallen off
// the bus is failed until its node is booted. Logs of real machines are read too, where
// they are beside the checkout.
func TestKernelLogsToTheEnd(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "xid", "*.log"))
	require.NoError(t, err)
	for _, file := range append(files, filepath.Join("..", "..", "internal", "xid", "testdata", "kernel.log")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			lost, lines := 0, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			for _, line := range lines {
				synctest.Test(t, func(t *testing.T) {
					b := startWithLog(t, withHealth)
					l := xid.Parse(line)
					b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, pci: l.PCI + ".0", values: map[*names.Metric]float64{&names.GPUXIDLast: 0}}}}))
					b.wait(15 * time.Second)
					b.sink.Reset()
					require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("n1", line)))
					events := b.events()
					outcome := map[xid.Kind]kernellog.Outcome{xid.GPU: kernellog.Used, xid.Switch: kernellog.Switch, xid.Other: kernellog.Other, xid.Invalid: kernellog.Invalid}[l.Kind]
					assert.Equal(t, map[kernellog.Outcome]int64{outcome: 1}, b.outcomes(), line)
					if l.Kind == xid.GPU && l.Code == 79 {
						lost++
						assert.Equal(t, []string{"raised: failed [xid_restart] reboot_node"}, healthEvents(events), line)
					}
				})
			}
			if filepath.Base(file) == "gpud-xid-sxid-lines.log" {
				assert.Equal(t, 7, lost)
			}
			t.Logf("%d lines, %d with XID 79", len(lines), lost)
		})
	}
}

// Of the connectors for each kind of output one reads the log.
func TestKernelLogIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, deviceSet)
		settings := connector.Settings{ID: b.c.id}
		one, err := NewFactory().CreateLogsToLogs(t.Context(), settings, b.c.cfg, b.sink)
		require.NoError(t, err)
		two, err := NewFactory().CreateLogsToMetrics(t.Context(), settings, b.c.cfg, new(consumertest.MetricsSink))
		require.NoError(t, err)
		b.c.health = nil // it was not started
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		b.sink.Reset()
		for _, c := range []connector.Logs{two, one} {
			require.NoError(t, c.ConsumeLogs(t.Context(), kernel("n1", line79)))
		}
		assert.Equal(t, []string{"79 1 reboot_node"}, xids(b.events()))
		require.NoError(t, one.Shutdown(t.Context()), "what reads metrics still runs")
		b.wait(3 * time.Minute)
		assert.NotEmpty(t, xids(append(b.feed(pageOfTwo(31)), b.wait(15*time.Second)...)))
	})
}

// A line is read once, over restarts too: a receiver that does not store where it has read
// to brings it again, and the page after a restart has its XID. Those of the time between
// are new.
func TestKernelLinesAcrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk()
		boot := func() *bench {
			b := d.boot(t, deviceSet, withHealth)
			b.readLog()
			return b
		}
		see := func(b *bench, last float64) []string {
			return xids(append(b.feed(pageOfTwo(last)), b.wait(15*time.Second)...))
		}
		b := boot()
		see(b, 0)
		happened := kernel("n1", line79)
		assert.Equal(t, []string{"79 1 reboot_node"}, b.write(happened))
		assert.Empty(t, b.write(happened), "again")
		b.wait(2 * time.Second)
		b.stop()
		between := kernel("n1", "NVRM: Xid (PCI:0000:3b:00): 48, a double-bit error")
		time.Sleep(time.Minute)
		b = boot()
		defer b.stop()
		assert.Empty(t, b.write(happened))
		assert.Empty(t, see(b, 79), "the log had it")
		assert.Equal(t, []string{"48 1 reset_gpu"}, b.write(between))
		assert.Equal(t, map[kernellog.Outcome]int64{kernellog.Duplicate: 1, kernellog.Used: 1}, b.outcomes())
	})
}

// A board that is on no page any more has lines still: they are repeats too.
func TestKernelLinesOfALostBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t)
		b.feed(pageOfTwo(0))
		var all []string
		for range 10 {
			all = append(all, xids(b.wait(time.Minute))...)
			all = append(all, b.write(kernel("n1", line79))...)
		}
		assert.Equal(t, []string{"79 1 reboot_node", "79 5 reboot_node"}, all)
	})
}

// What a reset has ended is not raised by a line from before it, and a line from a clock
// that is ahead is as old as its arrival.
func TestKernelLineFromBeforeAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t, withHealth)
		see := func(energy float64) {
			b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{&names.HwEnergy: energy, &names.GPUXIDLast: 0}}}}))
			b.wait(15 * time.Second)
		}
		line := func(at time.Time) []string {
			logs := kernel("n1", "NVRM: Xid (PCI:0000:03:00): 119, pid=1, name=x, Timeout")
			logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).SetTimestamp(pcommon.NewTimestampFromTime(at))
			b.sink.Reset()
			require.NoError(t, b.c.ConsumeLogs(t.Context(), logs))
			return healthEvents(b.events())
		}
		see(100)
		before := time.Now()
		see(200)
		see(1)
		assert.Empty(t, line(before))
		assert.Equal(t, []string{"raised: failed [xid_reset] reset_gpu"}, line(time.Now().Add(time.Hour)))
		time.Sleep(time.Second)
		b.sink.Reset()
		b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA, values: map[*names.Metric]float64{&names.HwEnergy: 0, &names.GPUXIDLast: 0}}}}))
		assert.Equal(t, []string{"cleared: ok <nil> none"}, healthEvents(b.wait(2*time.Second)))
	})
}

// The page knows the code of an NVLink error alone. The rule for its line decides, whichever
// is first.
func TestKernelLineAfterItsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t, withHealth)
		b.feed(pageOfTwo(0))
		b.wait(15 * time.Second)
		b.feed(pageOfTwo(149))
		assert.Equal(t, []string{"raised: failed [xid_link] read_log"}, healthEvents(b.wait(2*time.Second)))
		b.sink.Reset()
		require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("n1",
			"NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)")))
		assert.Equal(t, []string{"cleared: ok <nil> none"}, healthEvents(b.events()), "this one is to be ignored")
	})
}

// The board is the one of the node, which the resource or the record names. Where one was
// replaced it is the new one.
func TestBoardOfAKernelLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startWithLog(t)
		b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: gpuA}}}))
		b.wait(15 * time.Second)
		b.feed(scrape(page{at: time.Now(), node: "n1", gpus: []gpu{{id: "GPU-b"}}}))
		b.wait(15 * time.Second)
		const line = "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus."
		require.NoError(t, b.c.ConsumeLogs(t.Context(), kernel("", line)))
		assert.Equal(t, "GPU-b", b.events()[len(b.events())-1].resource[names.HwID])
		b.feed(scrape(page{at: time.Now(), node: "n2", gpus: []gpu{{id: "GPU-c"}}}))
		b.wait(15 * time.Second)
		assert.Empty(t, b.write(kernel("", line)), "there are two nodes")
		logs := kernel("", line)
		logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().PutStr(names.HostName, "n2")
		assert.Equal(t, []string{"79 1 reboot_node"}, b.write(logs))
		assert.Equal(t, "GPU-c", b.events()[0].resource[names.HwID])
	})
}
