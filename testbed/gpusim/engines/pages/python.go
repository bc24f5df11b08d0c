// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

// processRows are what the Prometheus client for Python reports about its process.
var processRows = []row{
	{name: "=python_gc_objects_collected_total", typ: "counter", help: "Objects that the garbage collector freed.", free: true, early: true, each: generations(14250, 2120, 303)},
	{name: "=python_gc_objects_uncollectable_total", typ: "counter", help: "Objects that it could not free.", free: true, early: true, each: generations(0, 0, 0)},
	{name: "=python_gc_collections_total", typ: "counter", help: "Runs of the garbage collector.", free: true, early: true, each: generations(1301, 118, 9)},
	{
		name: "=python_info", typ: "gauge", help: "Version of Python.", free: true, value: one,
		labels: labels{"implementation", "CPython", "major", "3", "minor", "12", "patchlevel", "9", "version", "3.12.9"},
	},
	{name: "=process_virtual_memory_bytes", typ: "gauge", help: "Virtual memory in bytes.", free: true, early: true, value: fixed(115891634176)},
	{name: "=process_resident_memory_bytes", typ: "gauge", help: "Resident memory in bytes.", free: true, early: true, value: fixed(5833011200)},
	{
		name: "=process_start_time_seconds", typ: "gauge", help: "Start of the process in seconds since 1970.", free: true, early: true,
		value: func(v *view) float64 { return v.unix(v.Process) },
	},
	{name: "=process_cpu_seconds_total", typ: "counter", help: "Processor time in seconds.", free: true, early: true, value: func(v *view) float64 { return 16 + v.uptime()/4 }},
	{name: "=process_open_fds", typ: "gauge", help: "Open file descriptors.", free: true, early: true, value: fixed(48)},
	{name: "=process_max_fds", typ: "gauge", help: "File descriptors that may be open.", free: true, early: true, value: fixed(1048576)},
}

func generations(values ...float64) func(*view) []sample {
	return func(*view) (out []sample) {
		for i, v := range values {
			out = append(out, sample{labels{"generation", string(rune('0' + i))}, v})
		}
		return out
	}
}

func one(*view) float64 { return 1 }

// fixed is a value that has nothing to do with the requests.
func fixed(v float64) func(*view) float64 { return func(*view) float64 { return v } }
