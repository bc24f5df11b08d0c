// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

func readSnapshot(t *testing.T, root string) *gpusysfs.Snapshot {
	t.Helper()
	reader := gpusysfs.New(root)
	reader.Ask()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); reader.Run(ctx) }()
	select {
	case <-reader.Changed():
	case <-time.After(30 * time.Second):
	}
	stop()
	<-done
	require.NotNil(t, reader.Snapshot())
	return reader.Snapshot()
}

// cpx is a page of the board in CPX mode: a die each, which is busy by its number times
// ten, uses 100 MiB times its number plus one, and has a gpu_id from 8 on.
func cpx(parts ...int) (page []string) {
	for _, n := range parts {
		if n == 0 {
			page = append(page, part(0, 8, "gpu_package_power", 500), part(0, 8, "gpu_gfx_activity", 13), part(0, 8, "gpu_ecc_uncorrect_total", 1), part(0, 8, "gpu_umc_activity", 40))
		} else {
			page = append(page, part(n, 8+n, "gpu_package_power", 0))
		}
		page = append(page, part(n, 8+n, "gpu_gfx_busy_instantaneous", 10*n, `xcc_index="0"`), part(n, 8+n, "gpu_used_vram", 100*(n+1)), part(n, 8+n, "gpu_total_vram", 24574))
	}
	return page
}

var eight = []int{0, 1, 2, 3, 4, 5, 6, 7}

// TestPartitions: the board has what exists once, and sums and means over its partitions.
func TestPartitions(t *testing.T) {
	// A board's value is that of its first partition, even if another one prints it before.
	r := scrape(t, append([]string{part(3, 11, "gpu_umc_activity", 0)}, cpx(eight...)...)...)
	assert.Equal(t, []string{
		"gpu.memory_controller.utilization{} 0.4",
		"hw.errors{error.type=uncorrected} 1",
		"hw.gpu.memory.limit{} 2.06141653e+11", // 8 × 24574 MiB
		"hw.gpu.memory.usage{} 3774873600",     // 3600 MiB
		"hw.gpu.memory.utilization{} 0.01831203711",
		"hw.gpu.utilization{hw.gpu.task=general} 0.35",
		"hw.power{} 500",
	}, r.Points(board0))
	assert.Equal(t, []string{
		"hw.gpu.memory.limit{} 2.576770662e+10", "hw.gpu.memory.usage{} 419430400", "hw.gpu.memory.utilization{} 0.01627736632",
		"hw.gpu.utilization{hw.gpu.task=general} 0.3",
	}, r.Points(board0+"/3"))
	assert.Equal(t, map[string]any{
		"hw.id": board0 + "/3", "hw.parent": board0, "hw.type": "gpu", "hw.vendor": "AMD", "hw.model": "AMD Instinct MI300X OAM",
		"gpu.partition.id": int64(3), "gpu.partition.profile": "cpx_nps4", "gpu.index": int64(11),
	}, r.Resource(board0+"/3"))
	assert.Equal(t, map[string]any{
		"hw.id": board0, "hw.type": "gpu", "hw.vendor": "AMD", "hw.model": "AMD Instinct MI300X OAM", "gpu.partition.profile": "cpx_nps4", "gpu.index": int64(8),
	}, r.Resource(board0))
	assert.Len(t, r.IDs(t), 9)
	assert.Equal(t, map[string]int{"no_sensor": 7}, r.Refusals())
}

// TestMissingPartition: sums over some of the partitions are not the board's.
func TestMissingPartition(t *testing.T) {
	r := scrape(t, cpx(0, 1, 2, 3, 4, 5, 7)...)
	assert.Empty(t, r.Only(board0, "hw.gpu.memory.usage"))
	assert.Empty(t, r.Only(board0, "hw.gpu.utilization"))
	assert.Equal(t, []string{"hw.gpu.memory.limit{} 2.06141653e+11"}, r.Only(board0, "hw.gpu.memory.limit"), "that of the model")
	assert.Equal(t, []string{"hw.power{} 500"}, r.Only(board0, "hw.power"))
	assert.NotContains(t, r.IDs(t), board0+"/6")

	first := scrape(t, cpx(1, 2, 3, 4, 5, 6, 7)...)
	assert.Empty(t, first.Only(board0, "hw.power"), "only the first partition has it")

	// Half of the memory of an MI355X in DPX mode, of which old exporters print one partition.
	labels := []string{`gpu_compute_partition_type="dpx"`, `gpu_id="0"`, `gpu_partition_id="0"`, `gpu_uuid="ccff75a3-0000-1000-80e0-c6d49f5b0d86"`}
	half := scrape(t, labelled("gpu_used_vram", 300, labels...), labelled("gpu_total_vram", 147448, labels...))
	assert.Equal(t, []string{"hw.gpu.memory.limit{} 3.092208681e+11"}, half.Points(board0))

	// A third of that of an MI300A in TPX mode, on a host where its GPU has 64,289 of 131,072 MiB.
	labels = []string{`gpu_compute_partition_type="tpx"`, `gpu_id="0"`, `gpu_partition_id="0"`, `gpu_uuid="ccff74a0-0000-1000-80e0-c6d49f5b0d86"`}
	third := scrape(t, labelled("gpu_used_vram", 300, labels...), labelled("gpu_total_vram", 21429, labels...))
	assert.Empty(t, third.Points(board0))
	assert.Equal(t, []string{"hw.gpu.memory.limit{} 2.24699351e+10"}, third.Only(board0+"/0", "hw.gpu.memory.limit"))
}

// TestMissingFirstPartition: what only the first partition has is absent while that is
// missing, and not 0: a counter that came back would have risen.
func TestMissingFirstPartition(t *testing.T) {
	page := func(from int) (lines []string) {
		for n := from; n < 8; n++ {
			v := 0
			if n == 0 {
				v = 5
			}
			lines = append(lines, part(n, n, "gpu_ecc_uncorrect_total", v), part(n, n, "gpu_umc_activity", v), part(n, n, "gpu_health", min(v+n%2, 1)),
				part(n, n, "gpu_xgmi_link_rx", v, `link_index="0"`))
		}
		return lines
	}
	e := newExporter(t)
	assert.Equal(t, []string{"hw.errors{error.type=uncorrected} 5"}, e.Scrape(page(0)...).Only(board0, "hw.errors"))
	missing := e.Scrape(page(1)...)
	assert.Equal(t, []string{
		"gpu.health.status{gpu.health.state=fail,gpu.health.watch=exporter} 1",
		"gpu.health.status{gpu.health.state=pass,gpu.health.watch=exporter} 0",
		"gpu.health.status{gpu.health.state=warn,gpu.health.watch=exporter} 0",
	}, missing.Points(board0), "a 0 of the health is no missing value")
	assert.Equal(t, 3, missing.Refusals()["no_sensor"])
	assert.Equal(t, []string{"hw.errors{error.type=uncorrected} 5"}, e.Scrape(page(0)...).Only(board0, "hw.errors"))
	unknown := append([]string{part(3, 15, "gpu_ecc_uncorrect_total", 0)}, page(0)...)
	assert.Empty(t, e.Scrape(unknown...).Only(board0, "hw.errors"), "which is the first is not known")

	modes := []string{part(0, 0, "gpu_used_vram", 1), strings.ReplaceAll(part(1, 1, "gpu_used_vram", 1), "cpx", "dpx")}
	for range 2 {
		assert.Equal(t, "dpx_nps4", scrape(t, modes...).Resource(board0)["gpu.partition.profile"], "in whatever order")
		slices.Reverse(modes)
	}
}

// TestRepeatedPartition: where two devices have one number, none of them is trusted.
func TestRepeatedPartition(t *testing.T) {
	page := cpx(0, 1, 2, 3, 4, 5, 6)
	page = append(page, part(6, 15, "gpu_gfx_busy_instantaneous", 70, `xcc_index="0"`), part(6, 15, "gpu_used_vram", 800), part(6, 15, "gpu_total_vram", 24574))
	r := scrape(t, page...)
	assert.Equal(t, []string{
		board0, board0 + "/gpu10", board0 + "/gpu11", board0 + "/gpu12", board0 + "/gpu13", board0 + "/gpu14", board0 + "/gpu15", board0 + "/gpu8", board0 + "/gpu9",
	}, r.IDs(t))
	assert.NotContains(t, r.Resource(board0+"/gpu15"), "gpu.partition.id")
	assert.Equal(t, "cpx_nps4", r.Resource(board0 + "/gpu15")["gpu.partition.profile"])
	assert.Equal(t, board0, r.Resource(board0 + "/gpu15")["hw.parent"])
	assert.Equal(t, 1, r.Refusals()["repeated"])
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 3774873600"}, r.Only(board0, "hw.gpu.memory.usage"), "eight devices are all there are")

	lacks := scrape(t, part(0, 8, "gpu_used_vram", 1), part(1, 9, "gpu_used_vram", 2), part("NA", 9, "gpu_total_vram", 24574), part("NA", "x", "gpu_total_vram", 1))
	assert.Equal(t, []string{board0, board0 + "/0", board0 + "/1"}, lacks.IDs(t), "a row that lacks the number has the gpu_id")
	assert.Len(t, lacks.Points(board0+"/1"), 3)
	assert.Equal(t, map[string]int{"no_device": 1}, lacks.Refusals())
	nameless := scrape(t, part("NA", 8, "gpu_used_vram", 1), part("4294967295", 9, "gpu_used_vram", 2), part("NA", "x", "gpu_used_vram", 3))
	assert.Equal(t, []string{board0 + "/gpu8", board0 + "/gpu9"}, nameless.IDs(t))
	assert.Equal(t, map[string]int{"no_device": 1}, nameless.Refusals())
}

// TestModeOfTheFirstPartitionAlone: drivers that give it on partition 0 only.
func TestModeOfTheFirstPartitionAlone(t *testing.T) {
	rest := func(n int) string {
		return labelled("gpu_used_vram", 1, mi300x, `gpu_compute_partition_type="none"`, `gpu_memory_partition_type="N/A"`, fmt.Sprintf(`gpu_id="%d"`, n), fmt.Sprintf(`gpu_partition_id="%d"`, n), `gpu_uuid="`+uuid0+`"`)
	}
	first := strings.ReplaceAll(part(0, 0, "gpu_used_vram", 1), `"cpx"`, `"GPU_COMPUTE_PARTITION_TYPE_CPX"`)
	r := scrape(t, rest(1), rest(2), first, rest(3))
	assert.Equal(t, []string{board0 + "/0", board0 + "/1", board0 + "/2", board0 + "/3"}, r.IDs(t))
	assert.Equal(t, "cpx_nps4", r.Resource(board0 + "/3")["gpu.partition.profile"])
}

// TestBoardOnEachPartition: where each partition prints the memory of the board.
func TestBoardOnEachPartition(t *testing.T) {
	var page []string
	for _, n := range eight {
		page = append(page, part(n, n, "gpu_used_vram", 5000), part(n, n, "gpu_total_vram", 196592), part(n, n, "gpu_prof_sm_active", 50))
	}
	r := scrape(t, page...)
	assert.Equal(t, []string{"hw.gpu.memory.limit{} 2.06141653e+11", "hw.gpu.memory.usage{} 5242880000", "hw.gpu.memory.utilization{} 0.02543338488"}, r.Points(board0))
	assert.Equal(t, []string{"gpu.sm.active{} 0.5"}, r.Points(board0+"/3"))
}

// TestModeChange: the points of partitions that are no more end at once.
func TestModeChange(t *testing.T) {
	e := newExporter(t)
	assert.Len(t, e.Scrape(cpx(eight...)...).IDs(t), 9)
	whole := e.Scrape(row("gpu_package_power", 400), row("gpu_gfx_activity", 20), row("gpu_used_vram", 7), row("gpu_total_vram", 196592))
	assert.Equal(t, []string{board0}, whole.IDs(t))
	assert.NotContains(t, whole.Resource(board0), "gpu.partition.profile")
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.2"}, whole.Only(board0, "hw.gpu.utilization"))
	assert.Len(t, e.Scrape(cpx(eight...)...).IDs(t), 9)
}

// TestPartitionsByTheHost: an unknown model has as many partitions as the kernel has
// compute nodes for it, in the mode that it had then.
func TestPartitionsByTheHost(t *testing.T) {
	const unknown = "99ff9999-0000-1000-80e0-c6d49f5b0d86"
	memory := "nps2"
	page := func(mode string) (lines []string) {
		for n := range 2 {
			lines = append(lines, labelled("gpu_used_vram", 10, `gpu_uuid="`+unknown+`"`, `gpu_compute_partition_type="`+mode+`"`, `gpu_memory_partition_type="`+memory+`"`, fmt.Sprintf(`gpu_id="%d"`, n), fmt.Sprintf(`gpu_partition_id="%d"`, n)))
		}
		return lines
	}
	board := sysfstest.Board{PCI: "0000:0c:00.0", Device: 0x9999, UniqueID: 0x99e0c6d49f5b0d86, Compute: "CPX", Memory: "NPS1", Parts: 2, Card: 1, Render: 128, XCP: 1}
	host := snapshotOf(t, board)
	with := func(s *gpusysfs.Snapshot, mode string) []string {
		return pagetexttest.New(t, NewVendor(func() *gpusysfs.Snapshot { return s }), devicemap.Options{}).Scrape(page(mode)...).Points("GPU-99e0c6d49f5b0d86")
	}
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 20971520"}, with(host, "cpx"))
	assert.Empty(t, with(nil, "cpx"), "how many there are is not known")
	assert.Equal(t, []string{"hw.gpu.memory.usage{} 20971520"}, with(nil, "dpx"))
	memory = "nps1"
	assert.Empty(t, with(host, "cpx"), "each partition may print the memory of both")
	memory = "nps2"
	board.Compute = "QPX"
	assert.Empty(t, with(snapshotOf(t, board), "cpx"), "read before the mode changed")
}

// TestSnapshotComesLater: what the host knows is used as soon as it is there.
func TestSnapshotComesLater(t *testing.T) {
	var host *gpusysfs.Snapshot
	e := pagetexttest.New(t, NewVendor(func() *gpusysfs.Snapshot { return host }), devicemap.Options{})
	assert.NotContains(t, e.Scrape(row("gpu_package_power", 1)).Resource(board0), "gpu.pci.address")
	host = snapshotOf(t, sysfstest.Board{PCI: "0000:0c:00.0", UniqueID: 0xcce0c6d49f5b0d86, Card: 1, Render: 128})
	assert.Equal(t, "0000:0c:00.0", e.Scrape(row("gpu_package_power", 1)).Resource(board0)["gpu.pci.address"])
}

// TestSumsInAllModes: over random pages, with partitions that are missing or repeated,
// what the board has is what its dies have, or absent; and no hw.id is there twice.
func TestSumsInAllModes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	modes := []struct {
		name  string
		parts int
	}{{"spx", 1}, {"dpx", 2}, {"tpx", 3}, {"qpx", 4}, {"cpx", 8}}
	const boards = 4
	e := newExporter(t)
	for page := range 2000 {
		var lines []string
		type truth struct {
			power, used, busy, dies int
			parts                   int
			first, all, repeated    bool
		}
		truths := map[string]truth{}
		for b := range boards {
			mode := modes[random.IntN(len(modes))]
			uuid := fmt.Sprintf("%02xff74a1-0000-1000-80ee-0000000000%02x", b+1, b+1)
			is := truth{power: 100 + random.IntN(600), all: true, first: true}
			missing, repeated := -1, -1
			if mode.parts > 1 && random.IntN(4) == 0 {
				missing = random.IntN(mode.parts)
			} else if mode.parts > 2 && random.IntN(4) == 0 {
				repeated = 1 + random.IntN(mode.parts-1)
			}
			for n := range mode.parts {
				if n == missing {
					is.all, is.first = false, is.first && n > 0
					continue
				}
				is.parts++
				number := n
				if n == repeated {
					is.repeated, number = true, n-1
				}
				labels := []string{mi300x, `gpu_compute_partition_type="` + mode.name + `"`, `gpu_memory_partition_type="nps1"`,
					`gpu_id="` + strconv.Itoa(8*b+n) + `"`, `gpu_partition_id="` + strconv.Itoa(number) + `"`, `gpu_uuid="` + uuid + `"`}
				power := 0
				if n == 0 {
					power = is.power
				}
				used := random.IntN(196592 / mode.parts)
				is.used += used
				add := func(family string, v int, more ...string) {
					lines = append(lines, labelled(family, v, append(labels, more...)...))
				}
				add("gpu_package_power", power)
				add("gpu_used_vram", used)
				add("gpu_total_vram", 196592/mode.parts)
				for die := range 8 / mode.parts {
					busy := random.IntN(101)
					is.busy, is.dies = is.busy+busy, is.dies+1
					add("gpu_gfx_busy_instantaneous", busy, fmt.Sprintf(`xcc_index="%d"`, die))
				}
			}
			truths[fmt.Sprintf("GPU-%02xee0000000000%02x", b+1, b+1)] = is
		}
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		r := e.Scrape(lines...)
		ids := r.IDs(t)
		for id, is := range truths {
			got := strings.Join(append(r.Only(id, "hw.power"), append(r.Only(id, "hw.gpu.memory.usage"), r.Only(id, "hw.gpu.utilization")...)...), "\n")
			var want []string
			if is.first {
				want = append(want, fmt.Sprintf("hw.power{} %d", is.power))
			}
			if is.all {
				want = append(want, fmt.Sprintf("hw.gpu.memory.usage{} %.10g", float64(is.used)*mib),
					fmt.Sprintf("hw.gpu.utilization{hw.gpu.task=general} %.10g", float64(is.busy)/float64(is.dies)/100))
			}
			require.Equal(t, strings.Join(want, "\n"), got, "page %d, %s: %+v", page, id, is)
			devices, usage := 0, 0.
			for _, other := range ids {
				if strings.HasPrefix(other, id+"/") {
					devices++
					require.Equal(t, is.repeated, strings.Contains(other, "/gpu"))
					line := r.Only(other, "hw.gpu.memory.usage")[0]
					_, text, _ := strings.Cut(line, " ")
					v, err := strconv.ParseFloat(text, 64)
					require.NoError(t, err)
					usage += v
				}
			}
			if is.parts > 1 {
				require.Equal(t, is.parts, devices)
				require.InEpsilon(t, float64(is.used)*mib+1, usage+1, 1e-6)
			}
		}
	}
}
