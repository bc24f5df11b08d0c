// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

// unread are the readings of the device until begin: then it is gone, or nothing is read of it.
func unread() map[string]string {
	return map[string]string{
		`hw_gpu_memory_usage_bytes{` + dev + `}`:                          "4e10x360",
		`hw_gpu_utilization_ratio{hw_gpu_task="general",` + dev + `}`:     "0.7x360",
		`hw_temperature_celsius{hw_sensor_location="gpu",` + dev + `}`:    "70x360",
		`hw_temperature_celsius{hw_sensor_location="memory",` + dev + `}`: "92x360",
	}
}

// presenceScenarios are what fires when devices and nodes are not there any more, or are not
// read.
var presenceScenarios = map[string]scenario{
	"a node is gone": {
		with(unread(), map[string]string{`gpu_exporter_up{` + exp + `}`: "1x360", `gpu_node_schedulable{` + node + `}`: "1x360"}),
		[]string{"GPUNodeLost"},
	},
	"a cordoned node is gone": {
		with(unread(), map[string]string{`gpu_exporter_up{` + exp + `}`: "1x360", `gpu_node_schedulable{` + node + `}`: "1x340 0x19"}), nil,
	},
	"a device is gone":                    {unread(), []string{"GPUDeviceLost"}},
	"a device reports all but its memory": {map[string]string{`hw_gpu_memory_usage_bytes{` + dev + `}`: "4e10x360"}, nil},
	"a device is suspended": {
		with(with(unread(), silent()), map[string]string{`gpu_device_suspended{` + dev + `}`: from("0", "1"), `hw_gpu_memory_limit_bytes{` + dev + `}`: "8e10x480"}), nil,
	},
	"a device is awake, and nothing is read of it": {
		with(unread(), map[string]string{`gpu_device_suspended{` + dev + `}`: "0x480", `hw_gpu_memory_limit_bytes{` + dev + `}`: "8e10x480"}), []string{"GPUDeviceLost"},
	},
	"a device that shares the memory of its machine is gone": {
		map[string]string{`hw_power_watts{` + spark + `}`: "30x360", `hw_status{hw_state="ok",hw_type="gpu",` + spark + `}`: "1x480"}, []string{"GPUDeviceLost"},
	},
	"a device that shares the memory of its machine reports a first XID": {
		map[string]string{
			`hw_power_watts{` + spark + `}`: "30x480", `hw_status{hw_state="ok",hw_type="gpu",` + spark + `}`: "1x480",
			`gpu_xid_errors_total{gpu_xid_code="79",` + spark + `}`: "_x360 1x119",
		}, []string{"GPUXIDFatal"},
	},
	"a device is gone while the MIG layout changes": {
		with(unread(), map[string]string{`gpu_node_mig_reconfiguring{` + node + `}`: from("0", "1")}), nil,
	},
	"a device is gone with its exporter": {
		with(unread(), map[string]string{`gpu_exporter_up{` + exp + `}`: from("1", "0")}), []string{"GPUExporterDown"},
	},
}
