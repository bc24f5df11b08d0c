// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	nvmllab "github.com/otelcol-gpu/otelcol-gpu/testbed/nvml"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/nvml/nvmlrun"
)

// place is a laboratory with a receiver. What goes wrong is wrong of the first board.
type place struct {
	*nvmllab.Lab
	*testing.T
	keys map[string]any
	run  *nvmlrun.Run
}

// scenario runs a case beside others; always are those that make test runs too.
func scenario(t *testing.T, name string, always bool, opts nvmllab.Options, run func(p *place)) {
	t.Helper()
	if !always && !nvmllab.All() {
		return
	}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		nvmllab.Counted(t)
		if opts.Boards == 0 {
			opts.Boards = 2
		}
		run(&place{Lab: nvmllab.Start(t, opts), T: t, keys: map[string]any{}})
	})
}

func (p *place) start() {
	p.T.Helper()
	p.run = nvmlrun.Start(p.T, nvmlrun.Keys(p.Lab, p.keys))
}

type values = map[string]float64

func up(v values) bool { return v["- gpu.exporter.up"] == 1 }

func down(v values) bool {
	up, there := v["- gpu.exporter.up"]
	return there && up == 0
}

// has is a condition: the board at a place has points of all metrics.
func (p *place) has(board int, metrics ...string) func(values) bool {
	uuid := p.Truth()[board].UUID
	return func(v values) bool {
		for _, m := range metrics {
			if _, there := v[uuid+" "+m]; !there {
				return false
			}
		}
		return true
	}
}

// whole is that the board at a place has what every board has, and the value of its power.
func (p *place) whole(board int) func(values) bool {
	truth := p.Truth()[board]
	there := p.has(board, "hw.gpu.memory.limit", "hw.temperature gpu", "hw.energy")
	return func(v values) bool {
		return there(v) && v[truth.UUID+" hw.power"] == float64(truth.PowerMilliwatts)/1000
	}
}

func not(is func(values) bool) func(values) bool { return func(v values) bool { return !is(v) } }

func both(is ...func(values) bool) func(values) bool {
	return func(v values) bool {
		for _, one := range is {
			if !one(v) {
				return false
			}
		}
		return true
	}
}

// healthy starts the receiver and waits until all boards are there.
func (p *place) healthy() {
	p.T.Helper()
	p.start()
	for i := range p.Truth() {
		p.run.Await(fmt.Sprint("board ", i), both(up, p.whole(i)))
	}
}

// logged is that a line of the log has all these.
func (p *place) logged(parts ...string) {
	p.T.Helper()
	assert.Eventually(p.T, func() bool {
	lines:
		for line := range strings.Lines(p.run.Log()) {
			for _, part := range parts {
				if !strings.Contains(line, part) {
					continue lines
				}
			}
			return true
		}
		return false
	}, 2*time.Minute, 50*time.Millisecond, "no line with %q in\n%s", parts, p.run.Log())
}

// Nothing comes of a library or a driver that does not answer but that it does not, its
// cause and its remedy; and it is back by itself.
func TestReceiverWithoutDriver(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		returned int
		outcome  string
	}{{9, "no_driver"}, {18, "version_mismatch"}, {999, "unknown_error"}, {4, "init"}} {
		scenario(t, c.outcome+fmt.Sprint("/", c.returned), i == 0, nvmllab.Options{}, func(p *place) {
			p.Fault("-", "nvmlInit_v2", "return", c.returned)
			p.start()
			p.run.Await("up 0", both(down, not(p.has(0, "hw.power"))))
			assert.Positive(p.T, p.run.Count("scrapes", c.outcome))
			p.logged("outcome:"+c.outcome, "remedy:")
			p.Clear()
			p.run.Await("the driver again", both(up, p.whole(0), p.whole(1)))
		})
	}
	scenario(t, "no library", true, nvmllab.Options{}, func(p *place) {
		p.keys["library"] = filepath.Join(filepath.Dir(p.Library), "none.so")
		p.start()
		p.run.Await("up 0", down)
		p.logged("outcome:no_library", "none.so")
	})
	scenario(t, "no hardware", true, nvmllab.Options{}, func(p *place) {
		p.keys["root_path"] = p.T.TempDir()
		p.start()
		p.logged("")
		assert.Empty(p.T, p.run.Scrapes())
		assert.Empty(p.T, p.Calls(), "no helper")
	})
	for name, text := range map[string]string{
		"helper that ends":            "#!/bin/sh\nexit 3\n",
		"helper of another version":   "#!/bin/sh\nprintf '\\000\\000\\000\\043{\"hello\":{\"version\":99,\"build\":\"x\"}}'\nsleep 60\n",
		"helper that writes nonsense": "#!/bin/sh\nprintf 'hello, world'\nsleep 60\n",
		"helper that is no program":   "\x7fELFnonsense",
		"helper without an end":       "#!/bin/sh\nprintf '\\377\\377\\377\\377'\nsleep 60\n",
	} {
		scenario(t, name, strings.Contains(name, "version"), nvmllab.Options{}, func(p *place) {
			path := filepath.Join(p.T.TempDir(), "helper")
			require.NoError(p.T, os.WriteFile(path, []byte(text), 0o755))
			p.keys["helper"] = path
			p.start()
			p.run.Await("up 0", down)
			p.logged("remedy:")
			assert.Zero(p.T, p.run.Count("scrapes", "ok"))
		})
	}
	scenario(t, "no helper", false, nvmllab.Options{}, func(p *place) {
		p.keys["helper"] = "/nonexistent/otelcol-gpu-nvml"
		p.start()
		p.run.Await("up 0", down)
		p.logged("outcome:helper_missing", "remedy:")
	})
}

// What is wrong of a board or a value costs that one alone.
func TestReceiverWithABadBoard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		call, kind string
		argument   []any
		metric     string // that is missing
		always     bool
	}{
		{"nvmlDeviceGetPowerUsage", "return", []any{4}, "hw.power", true},
		{"nvmlDeviceGetPowerUsage", "return", []any{999}, "hw.power", false},
		{"utilization.gpu", "value", []any{101}, "hw.gpu.utilization general", true},
		{"temperature", "value", []any{201}, "hw.temperature gpu", false},
		{"temperature", "value", []any{-61}, "hw.temperature gpu", false},
		{"power", "value", []any{10_000_001}, "hw.power", false},
		{"power", "value", []any{"4294967295"}, "hw.power", false},
		{"memory.used", "value", []any{"1000000000000000"}, "hw.gpu.memory.usage", false},
		{"energy", "value", []any{"18446744073709551615"}, "hw.energy", false},
		{"f.82", "value", []any{"1 0"}, "hw.temperature memory", false},
		{"f.94", "value", []any{"9 1"}, "gpu.pcie.replays", false},
	} {
		scenario(t, fmt.Sprint(c.call, c.argument), c.always, nvmllab.Options{}, func(p *place) {
			p.Fault("0", c.call, c.kind, c.argument...)
			p.start()
			p.run.Await("board 0 without "+c.metric, both(up, p.whole(1), p.has(0, "hw.gpu.memory.limit", "gpu.clock.frequency sm"), not(p.has(0, c.metric))))
			p.Clear()
			if c.argument[0] != 4 { // which is asked for again after ten minutes
				p.run.Await("board 0 again", p.has(0, c.metric))
			}
		})
	}
	for _, returned := range []int{15, 28} {
		scenario(t, fmt.Sprint("lost/", returned), returned == 15, nvmllab.Options{}, func(p *place) {
			p.healthy()
			p.Fault("0", "*", "return", returned)
			p.run.Await("board 1 alone", both(up, p.whole(1), not(p.has(0, "hw.gpu.memory.limit"))))
			p.logged("fallen off")
		})
	}
	scenario(t, "reset required", false, nvmllab.Options{}, func(p *place) {
		p.healthy()
		p.Fault("0", "nvmlDeviceGet*", "return", 16)
		p.run.Await("an action", func(v values) bool { return v[p.Truth()[0].UUID+" gpu.recovery.action"] == 1 })
	})
	scenario(t, "UUID twice", false, nvmllab.Options{Boards: 3}, func(p *place) {
		p.Fault("1", "uuid", "value", p.Truth()[2].UUID)
		p.start()
		p.run.Await("board 0", both(up, p.whole(0)))
		assert.Eventually(p.T, func() bool { return p.run.Count("values_refused", "repeated") > 0 }, 2*time.Minute, 50*time.Millisecond)
	})
	for _, uuid := range []string{"GPU-none", "x", ""} {
		scenario(t, "UUID "+uuid, uuid == "x", nvmllab.Options{}, func(p *place) {
			bad := p.Truth()[0].UUID
			p.Fault("0", "uuid", "value", uuid)
			p.start()
			v := p.run.Await("board 1", both(up, p.whole(1)))
			for key := range v {
				assert.False(p.T, strings.HasPrefix(key, bad) || strings.HasPrefix(key, "GPU-none"), key)
			}
		})
	}
}

// A board that hangs costs its seven neighbours no scrape, and is back when its call is.
func TestReceiverWithAHang(t *testing.T) {
	t.Parallel()
	scenario(t, "one of eight", true, nvmllab.Options{Boards: 8}, func(p *place) {
		p.healthy()
		p.Fault("0", "nvmlDeviceGetPowerUsage", "hang")
		p.run.Await("the hang", not(p.has(0, "hw.gpu.memory.limit")))
		from := len(p.run.Scrapes())
		p.logged("has not answered in time", "nvmlDeviceGetPowerUsage")
		assert.Eventually(p.T, func() bool { return len(p.run.Scrapes()) >= from+3 }, 2*time.Minute, 50*time.Millisecond)
		for _, md := range p.run.Scrapes()[from:] {
			v := nvmlrun.Values(md)
			for board := 1; board < 8; board++ {
				if !p.whole(board)(v) {
					nvmllab.Late()
					p.T.Errorf("neighbour %d is late", board)
				}
			}
		}
		assert.Zero(p.T, p.run.Count("helper_restarts", ""), "the neighbours keep their helper")
		p.Clear()
		p.run.Await("the board again", p.whole(0))
	})
	scenario(t, "crash", true, nvmllab.Options{}, func(p *place) {
		p.healthy()
		p.Fault("0", "nvmlDeviceGetPowerUsage", "segv")
		assert.Eventually(p.T, func() bool { return p.run.Count("helper_restarts", "crashed") > 0 }, 2*time.Minute, 50*time.Millisecond, p.run.Log)
		p.Clear()
		p.run.Await("both again", both(up, p.whole(0), p.whole(1)))
	})
}

// XIDs are counted exactly, by each source alone and by both.
func TestReceiverWithXIDs(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		name           string
		events, kernel int
		want           float64
	}{{"events", 10_000, 0, 10_000}, {"kernel log", 0, 10_000, 10_000}, {"both", 7, 9, 9}} {
		scenario(t, c.name, i < 2, nvmllab.Options{}, func(p *place) {
			p.healthy()
			uuid := p.Truth()[0].UUID
			p.run.Await("a board that is watched", p.has(0, "gpu.xid.last"))
			p.XID(0, -1, 31, c.events)
			p.KernelXID(0, -1, 31, c.kernel)
			key := uuid + " gpu.xid.errors 31"
			v := p.run.Await("all of them", func(v values) bool { return v[key] >= c.want })
			assert.Equal(p.T, c.want, v[key])
			assert.Equal(p.T, 31.0, v[uuid+" gpu.xid.last"])
		})
	}
	scenario(t, "79 of the kernel log", false, nvmllab.Options{}, func(p *place) {
		p.healthy()
		uuid := p.Truth()[0].UUID
		p.run.Await("a board that is watched", p.has(0, "gpu.xid.last"))
		p.Fault("0", "*", "return", 15)
		p.KernelXID(0, -1, 79, 1)
		p.run.Await("the XID of a lost board", func(v values) bool { return v[uuid+" gpu.xid.errors 79"] == 1 })
	})
}

// What changes of the host is followed.
func TestReceiverOfAHostThatChanges(t *testing.T) {
	t.Parallel()
	scenario(t, "MIG layout", true, nvmllab.Options{MIG: map[string][]string{"0": {"3g.40gb"}}}, func(p *place) {
		id := func() string { return fmt.Sprintf("%s/%d", p.Truth()[0].UUID, p.Truth()[0].Instances[0].ID) }
		p.start()
		old := id()
		p.run.Await("the instance", func(v values) bool { return v[old+" hw.gpu.memory.limit"] > 0 })
		require.NoError(p.T, p.Fleet.SetMIG(p.Node, 0, []string{"1g.10gb"}))
		p.Write()
		from := len(p.run.Scrapes())
		p.run.Await("the new instance alone", func(v values) bool { return v[id()+" hw.gpu.memory.limit"] > 0 && v[old+" hw.gpu.memory.limit"] == 0 })
		assert.LessOrEqual(p.T, len(p.run.Scrapes())-from, 3)
	})
	scenario(t, "release file", true, nvmllab.Options{}, func(p *place) {
		file := filepath.Join(p.T.TempDir(), "release")
		p.keys["release_file"] = file
		p.healthy()
		require.NoError(p.T, os.WriteFile(file, nil, 0o644))
		p.run.Await("the release", func(v values) bool { return v["- gpu.driver.released"] == 1 && !p.has(0, "hw.power")(v) })
		assert.Eventually(p.T, func() bool {
			calls := p.Calls()
			return calls[len(calls)-1].Name == "nvmlShutdown"
		}, 2*time.Minute, 50*time.Millisecond, "the helper ends")
		require.NoError(p.T, os.Remove(file))
		p.run.Await("both again", both(up, p.whole(0), p.whole(1)))
	})
	scenario(t, "a MIG mode that waits", false, nvmllab.Options{}, func(p *place) {
		p.healthy()
		p.Fault("0", "mig.pending", "value", 1)
		p.run.Await("the release", func(v values) bool { return v["- gpu.driver.released"] == 1 })
	})
	scenario(t, "another driver", false, nvmllab.Options{}, func(p *place) {
		p.healthy()
		require.NoError(p.T, os.WriteFile(filepath.Join(p.Root, "sys/module/nvidia/version"), []byte("580.65.06\n"), 0o644))
		assert.Eventually(p.T, func() bool { return p.run.Count("helper_restarts", "driver") > 0 }, 2*time.Minute, 50*time.Millisecond, p.run.Log)
		p.run.Await("both again", both(up, p.whole(0), p.whole(1)))
	})
	scenario(t, "suspended", true, nvmllab.Options{}, func(p *place) {
		pci := strings.ToLower(p.Truth()[0].PCIBusID[4:])
		folder := filepath.Join(p.Root, "sys/devices/pci0000:00", pci, "power")
		require.NoError(p.T, os.WriteFile(filepath.Join(folder, "control"), []byte("auto\n"), 0o644))
		p.healthy()
		require.NoError(p.T, os.WriteFile(filepath.Join(folder, "runtime_status"), []byte("suspended\n"), 0o644))
		uuid := p.Truth()[0].UUID
		p.run.Await("a board that sleeps", func(v values) bool {
			return v[uuid+" gpu.device.suspended"] == 1 && v[uuid+" hw.gpu.memory.limit"] > 0 && !p.has(0, "hw.power")(v)
		})
		before := len(p.Calls())
		p.run.Await("another scrape", both(up, p.whole(1)))
		for _, c := range p.Calls()[before:] {
			if !c.End {
				assert.NotEqual(p.T, "0", c.Device, c.Name)
			}
		}
	})
	// A server's GPU that the kernel may suspend and never does: it is read while a model is loaded,
	// also without a request, and left alone only when nothing uses it.
	scenario(t, "idle with a model loaded", true, nvmllab.Options{}, func(p *place) {
		pci := strings.ToLower(p.Truth()[0].PCIBusID[4:])
		require.NoError(p.T, os.WriteFile(filepath.Join(p.Root, "sys/devices/pci0000:00", pci, "power/control"), []byte("auto\n"), 0o644))
		p.Fault("0", "utilization.gpu", "value", 0)
		p.Fault("0", "memory.used", "value", 70<<30)
		p.healthy()
		for range 8 {
			p.run.Await("a scrape of both", both(up, p.whole(0), p.whole(1)))
		}
		p.Clear()
		p.Fault("0", "utilization.gpu", "value", 0)
		p.Fault("0", "memory.used", "value", 0)
		uuid := p.Truth()[0].UUID
		v := p.run.Await("a board at rest", both(up, not(p.has(0, "hw.power")), p.whole(1)))
		assert.InDelta(p.T, 0, v[uuid+" gpu.device.suspended"], 0)
		assert.Positive(p.T, v[uuid+" hw.gpu.memory.limit"], "it is not lost")
	})
}
