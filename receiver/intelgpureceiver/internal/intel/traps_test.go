// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intel

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext/pagetexttest"
)

const (
	energy = "hw_energy_joules_total"
	power  = "hw_power_watts"
)

func at(domain string) string { return `hw_sensor_location="` + domain + `"` }

// TestIdentity: the node is what is configured, else what the page names, else the host.
// An address in another form is the same GPU; a row without one is about none, and the sum
// over a card is dropped.
func TestIdentity(t *testing.T) {
	for name, tt := range map[string]struct {
		node, labels string
		want         []string
		refused      map[string]int
	}{
		"configured":      {"n", `pci_bdf="0000:4D:00.0",node="m"`, []string{"PCI-n@0000:4d:00.0"}, map[string]int{}},
		"named":           {"", `pci_bdf="0000:4d:00.0",node="m"`, []string{"PCI-m@0000:4d:00.0"}, map[string]int{}},
		"host":            {"", `pci_bdf="00000000:4d:00.0"`, []string{"PCI-host-1@0000:4d:00.0"}, map[string]int{}},
		"tile":            {"", `pci_bdf="0000:4d:00.0",sub_dev="1"`, []string{"PCI-host-1@0000:4d:00.0", "PCI-host-1@0000:4d:00.0/1"}, map[string]int{}},
		"tile of 2.x":     {"", `pci_bdf="0000:4d:00.0",com_intel_subdevice_id="0"`, []string{"PCI-host-1@0000:4d:00.0", "PCI-host-1@0000:4d:00.0/0"}, map[string]int{}},
		"tile, no number": {"", `pci_bdf="0000:4d:00.0",sub_dev="a/b::1"`, []string{"PCI-host-1@0000:4d:00.0"}, map[string]int{}},
		"no address":      {"", `uuid="00000000-0000-0000-0000-020a00008086"`, []string{}, map[string]int{"no_device": 1}},
		"no PCI address":  {"", `pci_bdf="unknown"`, []string{}, map[string]int{"no_device": 1}},
		"bad node":        {"", `pci_bdf="0000:4d:00.0",node="a/b"`, []string{}, map[string]int{"no_device": 1}},
		"card":            {"", `card="2147483649",node="m"`, []string{}, map[string]int{"dropped": 1}},
	} {
		r := pagetexttest.New(t, NewVendor(tt.node, "host-1"), devicemap.Options{}).Scrape("xpum_power_watts{" + tt.labels + "} 30")
		ids := r.IDs(t)
		if len(tt.want) == 2 { // the board has the tile's sum
			assert.Equal(t, tt.want[0], r.Resource(tt.want[1])[names.HwParent], name)
		}
		assert.ElementsMatch(t, tt.want, ids, name)
		assert.Equal(t, tt.refused, r.Refusals(), name)
	}
}

// TestOwner: the pod is the device's owner in the form that gpu_pod reads.
func TestOwner(t *testing.T) {
	r := scrape(t, row("xpum_power_watts", `kube_pod="llm-0",kube_namespace="ai",kube_container="server"`, 30))
	got := r.Resource(board)
	assert.Equal(t, "llm-0 ai server", strings.Join([]string{got["pod"].(string), got["namespace"].(string), got["container"].(string)}, " "))
	two := scrape(t, row("xpum_power_watts", `kube_pod="a",kube_namespace="n"`, 30), row("xpum_engine_ratio", `kube_pod="b",kube_namespace="n"`, 1))
	assert.Len(t, two.Resource(board)[names.DeviceHolders], 2, "a card that is shared")
	tiles := scrape(t, row("xpum_power_watts", `kube_pod="a"`, 31), row("xpum_power_watts", `sub_dev="1",kube_pod="a"`, 1))
	assert.Equal(t, "a", tiles.Resource(board)["pod"])
	assert.NotContains(t, tiles.Resource(board+"/1"), "pod", "the owner of a GPU is not that of its tiles as well")
	alone := scrape(t, row("xpum_power_watts", `sub_dev="0",kube_pod="a"`, 31), row("xpum_power_watts", `sub_dev="1",kube_pod="a"`, 1))
	assert.Equal(t, "a", alone.Resource(board)["pod"], "also where the GPU has no rows of its own")
	assert.NotContains(t, alone.Resource(board+"/1"), "pod")
}

// TestCardSums: the sums over the GPUs of a card stay under the exporter's names, for the
// dashboards that have them.
func TestCardSums(t *testing.T) {
	page := []string{row("xpum_power_watts", "", 30), `xpum_power_watts{card="1"} 61`}
	assert.Equal(t, map[string]int{"dropped": 1}, scrape(t, page...).Refusals())
	r := pagetexttest.New(t, NewVendor("n1", "h"), devicemap.Options{AsIs: true}).Scrape(page...)
	assert.Contains(t, r.Points(""), "xpum_power_watts{card=1} 61")
}

// TestHugeSum: a sum that no integer can have does not become negative.
func TestHugeSum(t *testing.T) {
	size := func(part string) string {
		return row("hw_memory_size_bytes", `hw_memory_location="device",hw_name="`+part+`"`, "9e18")
	}
	assert.Equal(t, []string{"hw.gpu.memory.limit{} 9.223372037e+18"}, scrape(t, size("a"), size("b")).Points(board))
}

// TestLimit: 1.x prints no size.
func TestLimit(t *testing.T) {
	for name, tt := range map[string]struct{ used, ratio, want string }{
		"known":     {"1000", "0.02", "hw.gpu.memory.limit{} 50000"},
		"too small": {"1000", "0.019", ""},
		"zero":      {"0", "0", ""},
	} {
		r := scrape(t, row("xpum_memory_used_bytes", "", tt.used), row("xpum_memory_ratio", "", tt.ratio))
		assert.Equal(t, tt.want, strings.Join(r.Only(board, "hw.gpu.memory.limit"), ""), name)
	}
	r := scrape(t, row("hw_memory_size_bytes", `hw_memory_location="device"`, 100), row("hw_memory_usage_bytes", `hw_memory_location="device"`, 106))
	assert.Empty(t, r.Only(board, "hw.gpu.memory.usage"))
	assert.Equal(t, map[string]int{"implausible": 1}, r.Refusals())
}

// TestDomain: of the power domains, which contain each other, one stands for the GPU, and
// it is chosen once.
func TestDomain(t *testing.T) {
	for name, tt := range map[string]struct {
		joules map[string]string
		want   string
	}{
		"card":                 {map[string]string{"card": "20", "package": "19", "gpu": "9", "memory": "4"}, "20"},
		"card below package":   {map[string]string{"card": "11", "package": "19", "gpu": "9"}, "19"},
		"no card":              {map[string]string{"package": "19", "gpu": "9"}, "19"},
		"gpu alone":            {map[string]string{"gpu": "9", "memory": "4"}, "9"},
		"memory is not enough": {map[string]string{"memory": "4"}, ""},
	} {
		var page []string
		for domain, v := range tt.joules {
			page = append(page, row(energy, at(domain), v), row(power, at(domain), v))
		}
		want := []string{}
		if tt.want != "" {
			want = []string{"hw.energy{} " + tt.want, "hw.power{} " + tt.want}
		}
		assert.Equal(t, want, scrape(t, page...).Points(board), name)
	}
	e := newExporter(t)
	e.Scrape(row(energy, at("card"), 20), row(energy, at("package"), 10))
	r := e.Scrape(row(energy, at("card"), 21), row(energy, at("package"), 22), row(power, at("card"), 5), row(power, at("package"), 6))
	assert.Equal(t, []string{"hw.energy{} 21", "hw.power{} 5"}, r.Points(board))
	assert.Empty(t, e.Scrape(row(power, at("package"), 6), row("hw_gpu_utilization_ratio", `hw_gpu_task="media-all"`, 1)).Only(board, "hw.power"))
}

// TestImplausible: terawatts, and an energy counter that falls for one page (which is no
// reset) or stays low (which is).
func TestImplausible(t *testing.T) {
	r := scrape(t, row(power, at("card"), "3.69e12"), row("xpum_temperature_celsius", `location="gpu"`, 201), row("hw_gpu_utilization_ratio", `hw_gpu_task="all"`, 1.06))
	assert.Empty(t, r.Points(board))
	assert.Equal(t, map[string]int{"implausible": 3}, r.Refusals())

	e := newExporter(t)
	page := func(joules string) string { return row(energy, at("card"), joules) }
	first := e.Scrape(page("22000000"))
	assert.Empty(t, e.Scrape(page("200")).Points(board))
	back := e.Scrape(page("22000100"))
	assert.Equal(t, []string{"hw.energy{} 22000100"}, back.Points(board))
	assert.Equal(t, map[string]int{"implausible": 1}, back.Refusals())
	assert.Equal(t, start(first), start(back), "no reset")
	assert.Empty(t, e.Scrape(page("5")).Points(board))
	reset := e.Scrape(page("6"))
	assert.Equal(t, []string{"hw.energy{} 6"}, reset.Points(board))
	assert.NotEqual(t, start(first), start(reset))
}

func start(r pagetexttest.Result) (start uint64) {
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeSum && m.Name() == names.HwEnergy.Name {
				start = uint64(m.Sum().DataPoints().At(0).StartTimestamp())
			}
		}
	}
	return start
}

// TestRepeated: 1.x is known to print one series twice with two values. Rows that it
// computes from others give way to them.
func TestRepeated(t *testing.T) {
	compute := `type="compute",src="direct"`
	r := scrape(t, row("xpum_engine_group_ratio", compute, 0.5), row("xpum_engine_group_ratio", compute, 0.9), row("xpum_engine_group_ratio", compute+`,dev_file="card1"`, 0.7))
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=compute} 0.5"}, r.Points(board))
	assert.Equal(t, map[string]int{"repeated": 2}, r.Refusals())

	for _, page := range [][]string{
		{row("xpum_power_watts", `src="sum"`, 310), row("xpum_power_watts", `src="direct"`, 42)},
		{row("xpum_power_watts", `src="direct"`, 42), row("xpum_power_watts", `src="sum"`, 310)},
	} {
		r = scrape(t, page...)
		assert.Equal(t, []string{"hw.power{} 42"}, r.Points(board))
		assert.Equal(t, map[string]int{"dropped": 1}, r.Refusals())
	}
	assert.Equal(t, []string{"hw.power{} 310"}, scrape(t, row("xpum_power_watts", `src="sum"`, 310)).Points(board))
}

// TestTiles: a GPU without a row of its own has the mean of the ratios and the sum of the
// bytes of its tiles, if all are there; one that has a row keeps it.
func TestTiles(t *testing.T) {
	tile := func(n, family, more string, v any) string { return row(family, `sub_dev="`+n+`"`+more, v) }
	whole := []string{
		tile("0", "xpum_engine_ratio", "", 0.2), tile("1", "xpum_engine_ratio", "", 0.4),
		tile("0", "xpum_memory_used_bytes", "", 100), tile("1", "xpum_memory_used_bytes", "", 300),
		tile("0", "xpum_temperature_celsius", `,location="gpu"`, 50), tile("1", "xpum_temperature_celsius", `,location="gpu"`, 60),
		tile("0", "xpum_power_watts", "", 100), tile("1", "xpum_power_watts", "", 110), row("xpum_power_watts", "", 250),
	}
	e := newExporter(t)
	assert.Equal(t, []string{
		"hw.gpu.memory.usage{} 400", "hw.gpu.utilization{hw.gpu.task=general} 0.3", "hw.power{} 250", "hw.temperature{hw.sensor_location=gpu} 60",
	}, e.Scrape(whole...).Points(board))
	half := e.Scrape(whole[0], whole[2], whole[8])
	assert.Equal(t, []string{"hw.power{} 250"}, half.Points(board), "a page that lacks a tile")
	some := e.Scrape(append(whole[:2:2], whole[2])...)
	assert.Equal(t, []string{"hw.gpu.utilization{hw.gpu.task=general} 0.3"}, some.Points(board), "a tile without memory")
}

// TestErrorsOfTiles: 2.x prints an error once there was one, so that a tile without a row has
// had none, while 1.x prints all errors of every tile.
func TestErrorsOfTiles(t *testing.T) {
	two := func(tile, kind, category string, v any) string {
		return row("hw_errors_total", `com_intel_subdevice_id="`+tile+`",error_type="`+kind+`",error_category="`+category+`"`, v)
	}
	one := func(tile, kind string, v any) string {
		return row("xpum_cache_errors_total", `sub_dev="`+tile+`",type="`+kind+`"`, v)
	}
	none := []string{two("0", "uncorrected", "cache_errors", 0), two("1", "uncorrected", "cache_errors", 0)}
	for name, tt := range map[string]struct {
		page []string
		want []string
	}{
		"none":                 {none, []string{"hw.errors{error.type=uncorrected} 0"}},
		"of one tile":          {append(none[:2:2], two("0", "corrected", "cache_errors", 7)), []string{"hw.errors{error.type=corrected} 7", "hw.errors{error.type=uncorrected} 0"}},
		"of both":              {append(none[:2:2], two("0", "corrected", "cache_errors", 7), two("1", "corrected", "memory_errors", 2)), []string{"hw.errors{error.type=corrected} 9", "hw.errors{error.type=uncorrected} 0"}},
		"1.x":                  {[]string{one("0", "correctable", 3), one("1", "correctable", 4)}, []string{"hw.errors{error.type=corrected} 7"}},
		"1.x, a tile has none": {[]string{one("0", "correctable", 3), one("1", "uncorrectable", 0)}, []string{}},
	} {
		e := newExporter(t)
		e.Scrape(tt.page...)
		assert.Equal(t, tt.want, e.Scrape(tt.page...).Only(board, "hw.errors"), name)
	}
	r := scrape(t, append(none, two("1", "uncorrected", "driver_errors", 2), two("0", "uncorrected", "reset", 1))...)
	assert.Equal(t, []string{"gpu.device.errors{error.type=driver} 2"}, r.Only(board, "gpu.device.errors"))
	assert.Equal(t, []string{"gpu.device.resets{} 1"}, r.Only(board, "gpu.device.resets"))
}

// TestErrorsThatAreMissing: a category that a page lacks did happen: totals do not fall and
// rise again. A reset, which another row shows, ends that.
func TestErrorsThatAreMissing(t *testing.T) {
	errors := func(tile, kind, category string, v any) string {
		return row("hw_errors_total", tile+`error_type="`+kind+`",error_category="`+category+`"`, v)
	}
	for name, tile := range map[string]string{"a GPU": "", "a tile": `com_intel_subdevice_id="0",`} {
		e := newExporter(t)
		other := errors(`com_intel_subdevice_id="1",`, "uncorrected", "memory_errors", 1)
		if tile == "" {
			other = errors("", "uncorrected", "driver_errors", 1)
		}
		memory, cache := errors(tile, "uncorrected", "memory_errors", 40), errors(tile, "uncorrected", "cache_errors", 2)
		total := func(lines ...string) []string {
			lines = append(lines, row("hw_temperature_celsius", tile+`hw_sensor_location="gpu"`, 30))
			return slices.DeleteFunc(e.Scrape(lines...).Only(board, "hw.errors"), func(line string) bool { return strings.Contains(line, "error.type=corrected") })
		}
		is := func(n int) []string {
			if tile != "" {
				n++ // of the other one
			}
			return []string{"hw.errors{error.type=uncorrected} " + strconv.Itoa(n)}
		}
		assert.Equal(t, is(42), total(memory, cache, other), name)
		assert.Equal(t, is(42), total(cache, other), name)
		assert.Equal(t, is(42), total(other), name+" of which no error is left")
		assert.Empty(t, total(), name+" of which the page has no errors at all")
		assert.Equal(t, is(43), total(memory, errors(tile, "uncorrected", "cache_errors", 3), other), name)
		assert.Equal(t, is(1), total(errors(tile, "uncorrected", "cache_errors", 1), other), name+" that was reset")
	}
}

// TestHealth: states by hw_type; what is not known has no point.
func TestHealth(t *testing.T) {
	for name, tt := range map[string]struct {
		rows map[string]int // type,state
		want map[string]string
	}{
		"well":                     {map[string]int{"gpu,ok": 1, "memory,ok": 1}, map[string]string{"gpu": "pass", "memory": "pass"}},
		"reset needed":             {map[string]int{"gpu,ok": 0, "gpu,reset_needed": 1}, map[string]string{"gpu": "fail"}},
		"no reset needed, no ok":   {map[string]int{"gpu,reset_needed": 0}, map[string]string{"gpu": "pass"}},
		"not ok, no reason":        {map[string]int{"gpu,ok": 0, "gpu,reset_needed": 0}, nil},
		"unknown":                  {map[string]int{"memory,unknown": 1, "memory,degraded": 0}, nil},
		"degraded":                 {map[string]int{"memory,degraded": 1, "memory,ok": 1}, map[string]string{"memory": "warn"}},
		"the worst counts":         {map[string]int{"memory,degraded": 1, "memory,replace": 1}, map[string]string{"memory": "fail"}},
		"another state":            {map[string]int{"gpu,survivability": 1}, map[string]string{"gpu": "warn"}},
		"link":                     {map[string]int{"pci_link,ok": 1}, map[string]string{"pcie": "pass"}},
		"temperature":              {map[string]int{"temperature,warning": 1}, map[string]string{"thermal": "warn"}},
		"throttling is no health":  {map[string]int{"frequency,throttled": 1}, nil},
		"without a type":           {map[string]int{",failed": 1}, map[string]string{"exporter": "fail"}},
		"without a state or value": {map[string]int{"gpu,": 1, ",": 0}, nil},
	} {
		var page []string
		for text, v := range tt.rows {
			component, state, _ := strings.Cut(text, ",")
			page = append(page, row("hw_status", `hw_type="`+component+`",hw_state="`+state+`"`, v))
		}
		got := map[string]string{}
		for _, line := range scrape(t, page...).Only(board, names.GPUHealthStatus.Name) {
			if text, on := strings.CutSuffix(line, "} 1"); on {
				parts := strings.Split(text, "=")
				state, _, _ := strings.Cut(parts[1], ",")
				got[parts[2]] = state
			}
		}
		assert.Equal(t, len(tt.want) == 0, len(got) == 0, name)
		assert.True(t, maps.Equal(tt.want, got), "%s: %v", name, got)
	}
}

// TestThrottle: reasons with a name among those of other vendors have it, whichever way
// they are spelled.
func TestThrottle(t *testing.T) {
	reason := func(text string, v int) string {
		return row("hw_frequency_throttle_status", `hw_frequency_domain="gpu",com_intel_speed_throttle_reason="`+text+`"`, v)
	}
	r := scrape(t, reason("ave_pwr_cap", 0), reason("burst_pwr_cap", 1), reason("thermal-limit", 1), reason("psu_alert", 0), reason("hw_range", 1), reason("", 1))
	assert.Equal(t, []string{
		"gpu.throttle.active{gpu.throttle.reason=hw_power_brake} 0", "gpu.throttle.active{gpu.throttle.reason=hw_range} 1",
		"gpu.throttle.active{gpu.throttle.reason=hw_thermal} 1", "gpu.throttle.active{gpu.throttle.reason=power_cap} 1",
	}, r.Points(board))
}

// TestNoDevices: a page of XPU Manager without any GPU is not up.
func TestNoDevices(t *testing.T) {
	r := scrape(t, "hw_gpu_info 1", "otelcol_process_uptime_seconds_total 5")
	assert.Contains(t, r.Points(""), "gpu.exporter.up{} 0")
}

// TestUnmapped: a family that is not in the table keeps the labels that distinguish its
// rows, and not those of the GPU.
func TestUnmapped(t *testing.T) {
	r := scrape(t, row("xpum_eu_stall_ratio", `src="direct",uuid="x",dev_name="y"`, 0.3), row("hw_fan_speed", `hw_id="a",hw_name="fan-1",otel_scope_name="sysman"`, 900))
	assert.Equal(t, []string{"xpum.eu_stall_ratio{} 0.3", "xpum.fan_speed{hw_name=fan-1} 900"}, r.Points(board))
}

// FuzzPage: no page makes the mapping panic, or gives one device twice or one point twice.
func FuzzPage(f *testing.F) {
	for _, line := range []string{
		row("xpum_power_watts", `src="sum",sub_dev="1"`, 5), row(energy, at("card"), 7), row("hw_errors_total", `error_type="correctable",error_category="a,b"`, 1),
		row("hw_status", `hw_type="memory",hw_state="ok"`, 1), row("xpum_memory_ratio", "", 0.5), `xpum_power_watts{card="1"} 3`,
		row("hw_frequency_throttle_status", `com_intel_speed_throttle_reason="x"`, 1), `hw_gpu_info{pci_bdf="::",node="/"} NaN`,
	} {
		f.Add(line+"\n", line+"\n"+strings.Replace(line, "4d", "4e", 1)+"\n")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		e := newExporter(t)
		for _, page := range []string{first, second, first} {
			r := e.ScrapePage([]byte(page))
			for _, id := range r.IDs(t) {
				points := map[string]bool{}
				for _, line := range r.Points(id) {
					point := line[:strings.LastIndexByte(line, ' ')]
					assert.False(t, points[point], "twice: %s", line)
					points[point] = true
				}
			}
		}
	})
}
