// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPage(t *testing.T) {
	for name, tt := range map[string]struct {
		tree tree
		want []string
	}{
		"a board of a server": {instinct, wholeInstinct},
		"another board": {radeon, []string{
			"gpu_edge_temperature 56", "gpu_energy_consumed 2.0054016e+06", "gpu_gfx_activity 3", "gpu_memory_temperature -3",
			"gpu_package_power 36", "gpu_total_vram 0.0009765625", "gpu_umc_activity 3", "gpu_used_vram 0.00048828125",
		}},
		"gpu_metrics alone": {tree{"gpu_metrics": metrics14()}, []string{
			"gpu_energy_consumed 1.0027008e+12", "gpu_gfx_activity 88", "gpu_junction_temperature 71", "gpu_memory_temperature 63",
			"gpu_package_power 742", "gpu_umc_activity 12",
		}},
		"without hwmon of the driver": {tree{"gpu_busy_percent": "3", "hwmon/hwmon0/name": "k10temp"}, []string{"gpu_gfx_activity 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := host(t, tt.tree)
			r := New(s, func(u Unread) { assert.Fail(t, "unread", "%v", u) })
			for range 2 {
				page, err := r.Page(t.Context(), nil)
				require.NoError(t, err)
				assert.Equal(t, tt.want, without(page))
			}
		})
	}
}

func TestLabels(t *testing.T) {
	for want, d := range map[string]gpusysfs.Device{
		labels:                      {PCI: "0000:19:00.0", DeviceID: 0x74a1, UniqueID: 0xc3ff88426fc31c9e, Serial: "692251", Product: "AMD Instinct MI300X", ComputePartition: "cpx", MemoryPartition: "nps4"},
		`pci_bus_id="0000:03:00.0"`: {PCI: "0000:03:00.0"},
		`pci_bus_id="0000:03:00.0",card_series="a \"b\" \\ c"`:          {PCI: "0000:03:00.0", Product: "a \"b\"\n\\ c"},
		`pci_bus_id="",gpu_uuid="00ff0000-0000-1000-8000-000000000001"`: {UniqueID: 1, ComputePartition: "spx", MemoryPartition: "nps1"},
	} {
		assert.Equal(t, want, labelsOf(&d))
	}
}

func TestNoBoards(t *testing.T) {
	none, _ := host(t)
	guest, _ := host(t, tree{"power/control": "on\n", "driver_override": "vfio-pci\n"})
	one, _ := host(t, instinct)
	now := none
	r := New(func() *gpusysfs.Snapshot { return now() }, nil)
	_, err := r.Page(t.Context(), nil)
	require.ErrorIs(t, err, ErrNoBoards)
	now = guest
	_, err = r.Page(t.Context(), nil)
	require.ErrorIs(t, err, ErrNoBoards)
	now = func() *gpusysfs.Snapshot { return nil }
	_, err = r.Page(t.Context(), nil)
	require.ErrorIs(t, err, ErrNoBoards)
	now = one
	page, err := r.Page(t.Context(), nil)
	require.NoError(t, err)
	require.NotEmpty(t, page)
	now = none
	page, err = r.Page(t.Context(), page)
	require.NoError(t, err, "boards that are gone are not a host without any")
	require.Empty(t, page)
	require.Empty(t, r.boards)
}

// faulty are files of which some fail or block.
type faulty struct {
	mu    sync.Mutex
	fail  map[string]error // by the end of the path
	block map[string]chan struct{}
	reads map[string]int
}

func (f *faulty) Read(path string, buf []byte, limit int) ([]byte, error) {
	f.mu.Lock()
	f.reads[path]++
	var err error
	var wait chan struct{}
	for end, e := range f.fail {
		if strings.HasSuffix(path, end) {
			err = &os.PathError{Op: "read", Path: path, Err: e}
		}
	}
	for end, c := range f.block {
		if strings.HasSuffix(path, end) {
			wait = c
		}
	}
	f.mu.Unlock()
	if wait != nil {
		<-wait
	}
	if err != nil {
		return buf[:0], err
	}
	return readFile(path, buf, limit)
}

func TestUnread(t *testing.T) {
	for name, tt := range map[string]struct {
		file  string
		err   error          // of the read
		text  string         // or of the file
		cause gpusysfs.Cause // "" where the file is just not there
		lost  []string
	}{
		"denied":           {"gpu_busy_percent", syscall.EPERM, "", gpusysfs.Denied, []string{"gpu_gfx_activity"}},
		"no right":         {"gpu_busy_percent", syscall.EACCES, "", gpusysfs.Denied, []string{"gpu_gfx_activity"}},
		"I/O error":        {"mem_busy_percent", syscall.EIO, "", gpusysfs.Failed, []string{"gpu_umc_activity"}},
		"busy":             {"power1_input", syscall.EBUSY, "", gpusysfs.Busy, []string{"gpu_package_power"}},
		"try again":        {"freq1_input", syscall.EAGAIN, "", gpusysfs.Busy, []string{"gpu_clock{clock_type=\"GPU_CLOCK_TYPE_SYSTEM\"}"}},
		"no data":          {"temp2_input", syscall.ENODATA, "", NoData, []string{"gpu_junction_temperature"}},
		"not supported":    {"temp3_input", syscall.EOPNOTSUPP, "", NoData, []string{"gpu_memory_temperature"}},
		"another error":    {"pcie_replay_count", syscall.ENOMEM, "", gpusysfs.Failed, []string{"pcie_replay_count"}},
		"gone":             {"pcie_replay_count", syscall.ENOENT, "", "", []string{"pcie_replay_count"}},
		"a text":           {"mem_info_vram_used", nil, "N/A\n", gpusysfs.Malformed, []string{"gpu_used_vram"}},
		"an empty file":    {"mem_info_vram_total", nil, "\n", gpusysfs.Malformed, []string{"gpu_total_vram"}},
		"a long file":      {"mem_info_vram_total", nil, strings.Repeat("1", 4097), gpusysfs.Malformed, []string{"gpu_total_vram"}},
		"metrics of size":  {"gpu_metrics", nil, metrics14()[:119], gpusysfs.Malformed, []string{"gpu_energy_consumed"}},
		"metrics empty":    {"gpu_metrics", nil, " ", gpusysfs.Malformed, []string{"gpu_energy_consumed"}},
		"metrics denied":   {"gpu_metrics", syscall.EPERM, "", gpusysfs.Denied, []string{"gpu_energy_consumed"}},
		"bad pages denied": {"gpu_vram_bad_pages", syscall.EPERM, "", gpusysfs.Denied, []string{"sysfs_vram_bad_pages_failed", "sysfs_vram_bad_pages_pending", "sysfs_vram_bad_pages_retired"}},
		"bad pages of another form": {
			"ras/gpu_vram_bad_pages", nil, "0x1 : 0x1000 : R\n0x1 : 0x1000 : X\n", gpusysfs.Malformed,
			[]string{"sysfs_vram_bad_pages_failed", "sysfs_vram_bad_pages_pending", "sysfs_vram_bad_pages_retired"},
		},
		"a block in a reset": { // and the sums, which would fall without it
			"ras/umc_err_count", nil, "Query currently inaccessible\n", gpusysfs.Busy,
			[]string{"gpu_ecc_correct_total", "gpu_ecc_correct_umc", "gpu_ecc_deferred_total", "gpu_ecc_deferred_umc", "gpu_ecc_uncorrect_total", "gpu_ecc_uncorrect_umc"},
		},
		"an unknown block": {
			"ras/new_err_count", nil, "ue: x\n", gpusysfs.Malformed,
			[]string{"gpu_ecc_correct_total", "gpu_ecc_deferred_total", "gpu_ecc_uncorrect_total"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, dirs := host(t, instinct)
			var unread []Unread
			files := &faulty{reads: map[string]int{}}
			r := New(s, func(u Unread) { unread = append(unread, u) })
			r.files = files
			page, err := r.Page(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, wholeInstinct, without(page))
			require.Empty(t, unread)

			if tt.err != nil {
				files.fail = map[string]error{tt.file: tt.err}
			}
			for path := range instinct {
				if strings.HasSuffix(path, tt.file) && tt.err == nil {
					tree{path: tt.text}.write(t, dirs[0])
				}
			}
			page, err = r.Page(t.Context(), page)
			require.NoError(t, err)
			var lost []string
			for _, line := range wholeInstinct {
				if !slices.Contains(without(page), line) {
					lost = append(lost, line[:strings.LastIndex(line, " ")])
				}
			}
			assert.Equal(t, tt.lost, lost)
			assert.Len(t, without(page), len(wholeInstinct)-len(lost), "nothing else changes")
			if tt.cause == "" {
				assert.Empty(t, unread)
				return
			}
			require.Len(t, unread, 1)
			assert.Equal(t, tt.cause, unread[0].Cause)
			assert.True(t, strings.HasSuffix(unread[0].Path, tt.file), unread[0].Path)
			assert.NotEmpty(t, Causes[tt.cause])

			files.fail = nil
			instinct.write(t, dirs[0])
			page, err = r.Page(t.Context(), page)
			require.NoError(t, err)
			assert.Equal(t, wholeInstinct, without(page), "and it is back at once")
		})
	}
}

// Some kernels have power1_average on boards that do not measure it.
func TestAverageThatIsNotMeasured(t *testing.T) {
	s, _ := host(t, radeon)
	r := New(s, func(u Unread) { assert.Fail(t, "unread", "%v", u) })
	r.files = &faulty{reads: map[string]int{}, fail: map[string]error{"power1_average": syscall.EOPNOTSUPP}}
	page, err := r.Page(t.Context(), nil)
	require.NoError(t, err)
	assert.Contains(t, without(page), "gpu_package_power 99")
}

// After the driver was loaded again, the sensors have another number.
func TestLayoutIsFoundAgain(t *testing.T) {
	s, dirs := host(t, instinct)
	r := New(s, func(u Unread) { assert.Fail(t, "unread", "%v", u) })
	page, err := r.Page(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dirs[0], "hwmon", "hwmon9"), filepath.Join(dirs[0], "hwmon", "hwmon4")))
	page, err = r.Page(t.Context(), page)
	require.NoError(t, err)
	assert.NotContains(t, without(page), "gpu_package_power 742")
	page, err = r.Page(t.Context(), page)
	require.NoError(t, err)
	assert.Equal(t, wholeInstinct, without(page))
}

func TestBlockedBoard(t *testing.T) {
	s, dirs := host(t, instinct, instinct)
	bad := dirs[0]
	synctest.Test(t, func(t *testing.T) {
		var unread []Unread
		blocked := make(chan struct{})
		file := filepath.Join(bad, "gpu_busy_percent")
		files := &faulty{reads: map[string]int{}, block: map[string]chan struct{}{file: blocked}}
		r := New(s, func(u Unread) { unread = append(unread, u) })
		r.files = files
		want := []Unread{{bad, gpusysfs.Blocked, errBlocked}}
		read := func() (lines int, took time.Duration) {
			unread = nil
			start := time.Now()
			page, err := r.Page(t.Context(), nil)
			require.NoError(t, err)
			return len(without(page)), time.Since(start)
		}

		lines, took := read()
		assert.Equal(t, len(wholeInstinct), lines, "the other board has its rows")
		assert.Equal(t, Deadline, took)
		assert.Equal(t, want, unread)

		for range 3 {
			lines, took = read()
			assert.Equal(t, len(wholeInstinct), lines)
			assert.Zero(t, took, "it is not waited for again")
			assert.Equal(t, want, unread)
			assert.Equal(t, 1, files.reads[file], "nor read again")
		}

		files.mu.Lock()
		files.block = nil
		files.mu.Unlock()
		close(blocked)
		synctest.Wait()
		lines, _ = read()
		assert.Equal(t, 2*len(wholeInstinct), lines)
		assert.Empty(t, unread)
		assert.Equal(t, 2, files.reads[file])
	})
}

func TestShutdownDoesNotWait(t *testing.T) {
	s, _ := host(t, instinct)
	synctest.Test(t, func(t *testing.T) {
		blocked := make(chan struct{})
		r := New(s, func(Unread) {})
		r.files = &faulty{reads: map[string]int{}, block: map[string]chan struct{}{"gpu_metrics": blocked}}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, stop)
		start := time.Now()
		_, err := r.Page(ctx, nil)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Millisecond, time.Since(start))
		close(blocked)
	})
}

// BenchmarkPage reads 8 boards.
func BenchmarkPage(b *testing.B) {
	s, _ := host(b, slices.Repeat([]tree{instinct}, 8)...)
	r := New(s, func(u Unread) { b.Fatal(u) })
	var page []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		page, err = r.Page(b.Context(), page)
		require.NoError(b, err)
	}
}
