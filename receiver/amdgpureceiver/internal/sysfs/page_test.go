// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
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
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree are files by their paths below the PCI device.
type tree map[string]string

// with returns the tree with other files; an empty text takes a file away.
func (t tree) with(more tree) tree {
	out := maps.Clone(t)
	maps.Copy(out, more)
	maps.DeleteFunc(out, func(_, text string) bool { return text == "" })
	return out
}

func (t tree) write(tb testing.TB, device string) {
	for path, text := range t {
		path = filepath.Join(device, path)
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(tb, os.WriteFile(path, []byte(text), 0o600))
	}
}

// metrics13 and metrics14 are files gpu_metrics; the first fills its page.
func metrics13() string {
	b := make([]byte, 4096)
	binary.LittleEndian.PutUint16(b, 120)
	b[2], b[3] = 1, 3
	for at, v := range map[int]uint16{4: 50, 6: 61, 8: 44, 16: 7, 18: 3, 22: 41} {
		binary.LittleEndian.PutUint16(b[at:], v)
	}
	binary.LittleEndian.PutUint64(b[24:], 2<<16) // 2 J
	return string(b)
}

func metrics14() string {
	b := make([]byte, 288)
	binary.LittleEndian.PutUint16(b, 288)
	b[2], b[3] = 1, 4
	for at, v := range map[int]uint16{4: 71, 6: 63, 10: 742, 12: 88, 14: 12} {
		binary.LittleEndian.PutUint16(b[at:], v)
	}
	binary.LittleEndian.PutUint64(b[24:], 1_000_000<<16) // a million joules
	return string(b)
}

// instinct is a board as the driver shows it, and radeon one with other sensors.
var (
	instinct = tree{
		"gpu_busy_percent": "93\n", "mem_busy_percent": "41\n", "pcie_replay_count": "7\n",
		"mem_info_vram_used": "1048576000\n", "mem_info_vram_total": "206141652992\n",
		"hwmon/hwmon3/name": "nvme\n", "hwmon/hwmon3/temp1_input": "1000\n", "hwmon/hwmon3/temp1_label": "junction\n",
		"hwmon/hwmon9/name": "amdgpu\n", "hwmon/hwmon9/power1_input": "742000000\n", "hwmon/hwmon9/power1_cap": "750000000\n",
		"hwmon/hwmon9/temp2_input": "71000\n", "hwmon/hwmon9/temp2_label": "junction\n",
		"hwmon/hwmon9/temp3_input": "63000\n", "hwmon/hwmon9/temp3_label": "mem\n",
		"hwmon/hwmon9/freq1_input": "2100000000\n", "hwmon/hwmon9/freq1_label": "sclk\n",
		"hwmon/hwmon9/freq2_input": "1300000000\n", "hwmon/hwmon9/freq2_label": "mclk\n",
		"gpu_metrics":            metrics14(),
		"ras/umc_err_count":      "ue: 1\nce: 12\nde: 3\n",
		"ras/pcie_bif_err_count": "ue: 2\nce: 0\n",
		"ras/new_err_count":      "ue: 4\nce: 5\nde: 6\n",
		"ras/gpu_vram_bad_pages": "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : R\n0x00000003 : 0x00001000 : P\n",
		"ras/features":           "feature mask: 0x3\n",
		"pcie_bw":                "it blocks for a second\n",
	}
	radeon = tree{
		"gpu_busy_percent": "3\n", "mem_info_vram_used": "512\n", "mem_info_vram_total": "1024\n",
		"hwmon/hwmon5/name":           "amdgpu\n",
		"hwmon/hwmon5/power1_average": "36000000\n", "hwmon/hwmon5/power1_input": "99000000\n",
		"hwmon/hwmon5/temp1_input": "56000\n", "hwmon/hwmon5/temp1_label": "edge\n",
		"hwmon/hwmon5/temp2_input": "-3000\n", "hwmon/hwmon5/temp2_label": "mem\n",
		"hwmon/hwmon5/fan1_input": "0\n",
		"gpu_metrics":             metrics13(),
	}
)

const labels = `pci_bus_id="0000:19:00.0",gpu_uuid="c3ff74a1-0000-1000-80ff-88426fc31c9e",serial_number="692251",card_series="AMD Instinct MI300X"`

// host writes a host with a board for each of the trees, which have the labels above but
// for their addresses. It returns the folders of the boards, too.
func host(t testing.TB, trees ...tree) (snapshot func() *gpusysfs.Snapshot, folders []string) {
	var boards []sysfstest.Board
	for i, tree := range trees {
		boards = append(boards, sysfstest.Board{
			PCI: fmt.Sprintf("0000:%02x:00.0", 0x19+i), UniqueID: 0xc3ff88426fc31c9e, Serial: "692251", Product: "AMD Instinct MI300X",
			Compute: "CPX", Memory: "NPS4", Files: tree,
		})
	}
	boards = append(boards, sysfstest.Board{PCI: "0000:03:00.0", Vendor: gpusysfs.VendorIntel, Device: 0xe20b, Files: instinct})
	s := read(t, sysfstest.Write(t, boards...))
	for d := range s.Devices() {
		if d.Vendor == gpusysfs.VendorAMD {
			folders = append(folders, d.Path)
		}
	}
	require.Len(t, folders, len(trees))
	return func() *gpusysfs.Snapshot { return s }, folders
}

func read(t testing.TB, root string) *gpusysfs.Snapshot {
	r := gpusysfs.New(root)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		r.Run(ctx)
		close(ended)
	}()
	r.Ask()
	<-r.Changed()
	stop()
	<-ended
	return r.Snapshot()
}

// without cuts the labels that all rows of a page have.
func without(page []byte) []string {
	var lines []string
	for line := range strings.Lines(string(page)) {
		line = strings.Replace(line, labels, "", 1)
		line = strings.Replace(strings.Replace(line, "{,", "{", 1), "{}", "", 1)
		lines = append(lines, strings.TrimSpace(line))
	}
	slices.Sort(lines)
	return lines
}

var wholeInstinct = []string{
	`gpu_clock{clock_type="GPU_CLOCK_TYPE_MEMORY"} 1300`, `gpu_clock{clock_type="GPU_CLOCK_TYPE_SYSTEM"} 2100`,
	"gpu_ecc_correct_bif 0", "gpu_ecc_correct_total 17", "gpu_ecc_correct_umc 12",
	"gpu_ecc_deferred_total 9", "gpu_ecc_deferred_umc 3",
	"gpu_ecc_uncorrect_bif 2", "gpu_ecc_uncorrect_total 7", "gpu_ecc_uncorrect_umc 1",
	"gpu_energy_consumed 1.0027008e+12", // a million joules, which AMD's library has as 15.3 µJ a step of 2^-16 J
	"gpu_gfx_activity 93", "gpu_junction_temperature 71", "gpu_memory_temperature 63",
	"gpu_package_power 742", "gpu_total_vram 196592", "gpu_umc_activity 41", "gpu_used_vram 1000",
	"pcie_replay_count 7", "sysfs_power1_cap 7.5e+08",
	"sysfs_vram_bad_pages_failed 0", "sysfs_vram_bad_pages_pending 1", "sysfs_vram_bad_pages_retired 2",
}

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
		"another driver":              {tree{"vendor": "0x1002"}, nil},
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
		labels:                      {PCI: "0000:19:00.0", DeviceID: 0x74a1, UniqueID: 0xc3ff88426fc31c9e, Serial: "692251", Product: "AMD Instinct MI300X"},
		`pci_bus_id="0000:03:00.0"`: {PCI: "0000:03:00.0"},
		`pci_bus_id="0000:03:00.0",card_series="a \"b\" \\ c"`:          {PCI: "0000:03:00.0", Product: "a \"b\"\n\\ c"},
		`pci_bus_id="",gpu_uuid="00ff0000-0000-1000-8000-000000000001"`: {UniqueID: 1},
	} {
		assert.Equal(t, want, labelsOf(&d))
	}
}

func TestNoBoards(t *testing.T) {
	none, _ := host(t)
	one, _ := host(t, instinct)
	now := none
	r := New(func() *gpusysfs.Snapshot { return now() }, nil)
	_, err := r.Page(t.Context(), nil)
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
