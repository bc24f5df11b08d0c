// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package amd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/gpusysfs/sysfstest"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

func TestParseUUID(t *testing.T) {
	for text, want := range map[string]struct {
		unique uint64
		pciID  uint16
	}{
		"ccff74a1-0000-1000-80e0-c6d49f5b0d86":  {0xcce0c6d49f5b0d86, 0x74a1}, // MI300X
		"c3ff74a1-0000-0000-80ff-88426fc31c9e":  {0xc3ff88426fc31c9e, 0x74a1}, // likewise, partition 0
		"c3ff74a1-0003-0003-80ff-88426fc31c9e":  {0xc3ff88426fc31c9e, 0x74a1}, // partition 3
		"c30274a1-0000-0000-80ff-88426fc31c9e":  {0xc3ff88426fc31c9e, 0x74a1}, // partition in the function
		"CCFF74A1-0000-1000-80E0-C6D49F5B0D86":  {0xcce0c6d49f5b0d86, 0x74a1},
		"6699c0a8-4200-4242-037f-f97e6cae0f09":  {0x667ff97e6cae0f09, 0xc0a8},
		"00000000-0000-0000-0000-000000000000":  {},
		"00ff74a1-0000-1000-8000-000000000000":  {}, // no unique_id
		"ccff74a1-0000-1000-80e0-c6d49f5b0d8":   {},
		"ccff74a1-0000-1000-80e0-c6d49f5b0d866": {},
		"ccff74a1-0000-1000-80e0-c6d49f5b0dXX":  {},
		"zzff74a1-0000-1000-80e0-c6d49f5b0d86":  {},
		"ccff74a10-000-1000-80e0-c6d49f5b0d86":  {},
		"ccff74a1-0000-1000-80e0-c6d4-f5b0d86-": {},
		"ccff74a1-0000-1000-80e0-+6d49f5b0d86":  {},
		"":                                      {},
		"NA":                                    {},
	} {
		unique, pciID := parseUUID(text)
		assert.Equal(t, want.unique, unique, text)
		assert.Equal(t, want.pciID, pciID, text)
	}
}

func FuzzUUID(f *testing.F) {
	f.Add(uuid0)
	f.Add("00000000-0000-0000-0000-000000000000")
	f.Add("ccff74a1-0000-1000-80e0-c6d49f5b0d8é")
	f.Fuzz(func(t *testing.T, text string) {
		unique, pciID := parseUUID(text)
		if unique == 0 {
			assert.Zero(t, pciID)
			return
		}
		id := fmt.Sprintf("%016x", unique)
		lower := strings.ToLower(text)
		assert.Equal(t, lower[:2]+lower[21:23]+lower[24:], id)
		assert.Equal(t, lower[4:8], fmt.Sprintf("%04x", pciID))
	})
}

// device is a row of a device with an index, and with what distinguishes it.
func device(index int, labels ...string) string {
	return labelled("gpu_package_power", 100+index, append(labels, fmt.Sprintf(`gpu_id="%d"`, index), `gpu_partition_id="0"`, `gpu_compute_partition_type="spx"`)...)
}

const zero = `gpu_uuid="00000000-0000-0000-0000-000000000000"`

// TestIdentity: which board a row is about, and rows that are about none.
func TestIdentity(t *testing.T) {
	host := snapshotOf(t,
		sysfstest.Board{PCI: "0000:0c:00.0", Device: 0x74a1, UniqueID: 0x1111111111111111, Serial: "S1", Card: 1, Render: 128},
		sysfstest.Board{PCI: "0000:22:00.0", Device: 0x74a1, UniqueID: 0x2222222222222222, Serial: "S2", Card: 2, Render: 129},
		sysfstest.Board{PCI: "0000:38:00.0", Device: 0x74a1, UniqueID: 0x3333333333333333, Serial: "S2", Card: 3, Render: 130})
	for _, c := range []struct {
		name   string
		page   []string
		sysfs  bool
		want   []string
		refuse int // rows without identity
	}{
		{"uuid", []string{device(0, `gpu_uuid="`+uuid0+`"`)}, false, []string{board0}, 0},
		{"keys in upper case", []string{labelled("GPU_POWER_USAGE", 1, `GPU_UUID="`+uuid0+`"`, `SERIAL_NUMBER="S1"`)}, false, []string{board0}, 0},
		{"the uuid wins over the serial number", []string{device(0, `gpu_uuid="`+uuid0+`"`, `serial_number="S1"`)}, true, []string{board0}, 0},
		{"zero uuid of a guest", []string{device(0, zero), device(1, zero)}, false, nil, 2},
		{"zero uuid and serial number", []string{device(0, zero, `serial_number="S1"`)}, false, []string{"GPU-serial-S1"}, 0},
		{"no uuid, the host knows the serial number", []string{device(0, `serial_number="S1"`)}, true, []string{"GPU-1111111111111111"}, 0},
		{"two boards of the host have it", []string{device(0, `serial_number="S2"`)}, true, []string{"GPU-serial-S2"}, 0},
		{"a host that is another one", []string{device(0, `serial_number="S9"`)}, true, []string{"GPU-serial-S9"}, 0},
		{"uuid that is no uuid", []string{device(0, `gpu_uuid="GPU-0"`, `serial_number="S1"`)}, false, []string{"GPU-serial-S1"}, 0},
		{"two boards share a serial number", []string{device(0, `serial_number="xxxx"`), device(3, `serial_number="xxxx"`), device(4, `serial_number="S4"`)}, false, []string{"GPU-serial-S4"}, 2},
		{"a board and a partitioned one share it", []string{`gpu_package_power{gpu_id="0",gpu_partition_id="0",gpu_compute_partition_type="dpx",serial_number="xxxx"} 100`, `gpu_package_power{gpu_id="1",gpu_partition_id="1",gpu_compute_partition_type="dpx",serial_number="xxxx"} 100`, `gpu_package_power{gpu_id="9",gpu_partition_id="NA",serial_number="xxxx"} 100`}, false, nil, 3},
		{"two boards share one, the host has it once", []string{device(0, `serial_number="S1"`), device(3, `serial_number="S1"`)}, true, nil, 2},
		{"one of two with the serial number has a uuid", []string{device(0, `gpu_uuid="`+uuid0+`"`, `serial_number="S1"`), device(1, `serial_number="S1"`)}, true, []string{board0}, 1},
		{"no serial number", []string{device(0, `serial_number="N/A"`), device(1)}, true, nil, 2},
		{"a family that the table does not know", []string{labelled("gpu_voltage", 800, zero, `gpu_id="0"`)}, false, nil, 1},
		{"a serial number that cannot be in an id", []string{device(0, `serial_number="a/b::c"`)}, false, nil, 1},
	} {
		v := NewVendor(nil)
		if c.sysfs {
			v = NewVendor(func() *gpusysfs.Snapshot { return host })
		}
		r := pagetexttest.New(t, v, devicemap.Options{}).Scrape(c.page...)
		assert.ElementsMatch(t, c.want, r.IDs(t), c.name)
		assert.Equal(t, c.refuse, r.Refusals()["no_device"], c.name)
	}
}

func snapshotOf(t *testing.T, boards ...sysfstest.Board) *gpusysfs.Snapshot {
	t.Helper()
	return readSnapshot(t, sysfstest.Write(t, boards...))
}

// TestResource: what is known of a board.
func TestResource(t *testing.T) {
	host := snapshotOf(t, sysfstest.Board{PCI: "0000:0c:00.0", Device: 0x74a1, UniqueID: 0xcce0c6d49f5b0d86, Card: 1, Render: 128})
	line := row("gpu_package_power", 400, `card_model="102-G30211-0C"`, `driver_version="6.12.12"`, `vbios_version="022.040"`, `hostname="tw038"`, `cluster_name="slurm"`,
		`kfd_process_id="1,2"`, `deployment_mode="baremetal"`, `team="search"`, `pod="llm-0"`, `namespace="prod"`, `container="engine"`)
	r := pagetexttest.New(t, NewVendor(func() *gpusysfs.Snapshot { return host }), devicemap.Options{}).Scrape(line)
	assert.Equal(t, map[string]any{
		"hw.id": board0, "hw.type": "gpu", "hw.vendor": "AMD", "hw.model": "AMD Instinct MI300X OAM", "hw.serial_number": "692409005408",
		"hw.driver_version": "6.12.12", "hw.firmware_version": "022.040", "gpu.index": int64(0), "gpu.pci.address": "0000:0c:00.0", "host.name": "tw038",
		"pod": "llm-0", "namespace": "prod", "container": "engine",
	}, r.Resource(board0))
	model := func(labels ...string) any {
		return scrape(t, labelled("gpu_package_power", 400, append(labels, `card_model="102-G30211-0C"`)...)).Resource(board0)["hw.model"]
	}
	assert.Equal(t, "0x74a1", model(`gpu_uuid="`+uuid0+`"`), "without card_series")
	assert.Equal(t, "102-G30211-0C", scrape(t, labelled("gpu_package_power", 1, `serial_number="S1"`, `card_model="102-G30211-0C"`)).Resource("GPU-serial-S1")["hw.model"])
}

// TestOwners: labels that name who has the board.
func TestOwners(t *testing.T) {
	for name, c := range map[string]struct {
		labels []string
		want   map[string]any
	}{
		"pod":             {[]string{`pod="a"`, `namespace="b"`, `container="c"`}, map[string]any{"pod": "a", "namespace": "b", "container": "c"}},
		"Slurm job":       {[]string{`job_id="42"`, `job_user="ada"`, `job_partition="gpu"`, `cluster_name="x"`}, map[string]any{"job_id": "42", "job_user": "ada", "job_partition": "gpu"}},
		"no owner":        {[]string{`pod=""`, `namespace=""`, `container=""`, `job_id=""`}, map[string]any{}},
		"exporter's pod":  {[]string{`pod="default-metrics-exporter-vvvkm"`, `job="gpu-exporter"`, `instance="10.42.1.221:5000"`, `node="tw009"`}, map[string]any{}},
		"scraped, owned":  {[]string{`pod="a"`, `namespace="b"`, `container="c"`, `job="gpu-exporter"`, `instance="10.42.1.221:5000"`}, map[string]any{"pod": "a", "namespace": "b", "container": "c"}},
		"renamed":         {[]string{`pod="own"`, `exported_pod="a"`, `exported_namespace="b"`, `exported_container="c"`, `job="x"`}, map[string]any{"pod": "a", "namespace": "b", "container": "c"}},
		"labels of a pod": {[]string{`pod="a"`, `namespace="b"`, `container="c"`, `pod_label_app="llm"`}, map[string]any{"pod": "a", "namespace": "b", "container": "c", "pod_label_app": "llm"}},
	} {
		got := scrape(t, row("gpu_package_power", 1, c.labels...)).Resource(board0)
		for key := range got {
			if strings.Contains(key, ".") {
				delete(got, key)
			}
		}
		assert.Equal(t, c.want, got, name)
	}
	r := scrape(t, row("gpu_package_power", 1, `job_id="1"`), row("gpu_umc_activity", 1, `job_id="2"`))
	assert.Equal(t, []any{map[string]any{"job_id": "1"}, map[string]any{"job_id": "2"}}, r.Resource(board0)["gpu.exporter.holders"], "two jobs")
}
