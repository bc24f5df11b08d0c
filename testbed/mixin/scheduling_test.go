// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package mixin

// scheduling is what gpu_scheduling, gpu_summary and the pages of schedulers report of a
// cluster in which nothing waits for long.
func scheduling(add func(string, float64, ...string), seconds float64) {
	of := func(name string, value float64, more ...string) {
		add(name, value, append([]string{"k8s_namespace_name", "", "service_name", ""}, more...)...)
	}
	h100 := func(name string, value float64, more ...string) {
		of(name, value, append([]string{"k8s_resource_name", "nvidia.com/gpu", "hw_model", "NVIDIA H100"}, more...)...)
	}
	for state, devices := range map[string]float64{"allocatable": 8, "requested": 6, "free": 2, "stranded": 0} {
		h100("gpu_node_devices", devices, "k8s_node_name", "node-a", "gpu_node_device_state", state)
	}
	h100("gpu_scheduling_stranded", 0, "gpu_stranded_reason", "cpu")
	for size, fit := range map[string]float64{"1": 2, "2": 1, "4": 0, "8": 0} {
		h100("gpu_scheduling_fit", fit, "gpu_request_size", size)
	}
	h100("gpu_scheduling_fragmentation_ratio", 1, "gpu_request_size", "4")
	waits := []string{"k8s_namespace_name", "training", "gpu_queue_name", "research", "gpu_pending_reason", "insufficient_gpu"}
	h100("gpu_scheduling_pending_devices", 4, waits...)
	h100("gpu_scheduling_pending_pods", 1, waits...)
	of("gpu_scheduling_pending_age_max_seconds", 60, waits...)
	histogram := func(name string, more ...string) {
		of(name+"_bucket", seconds/10, append(more, "le", "10")...)
		of(name+"_bucket", seconds/5, append(more, "le", "60")...)
		of(name+"_bucket", seconds/5, append(more, "le", "+Inf")...)
	}
	for _, name := range []string{"gpu_scheduling_schedule_duration_seconds", "gpu_scheduling_start_duration_seconds", "gpu_scheduling_first_use_duration_seconds"} {
		histogram(name, "k8s_namespace_name", "training", "gpu_queue_name", "research")
	}
	of("gpu_scheduling_never_used_total", seconds/600, "k8s_namespace_name", "training", "gpu_queue_name", "research")
	for _, name := range []string{"kube-scheduler", "kueue"} {
		of("gpu_scheduler_up", 1, "gpu_scheduler_name", name, "server_address", name, "server_port", "443")
	}
	of("scheduler_pending_pods", 1, "queue", "unschedulable")
	histogram("scheduler_scheduling_attempt_duration_seconds", "result", "scheduled", "profile", "default-scheduler")
	histogram("scheduler_pod_scheduling_sli_duration_seconds", "attempts", "1")
	histogram("kueue_admission_wait_time_seconds", "cluster_queue", "research", "replica_role", "leader")
	for name, devices := range map[string]float64{"nominal_quota": 4, "resource_usage": 6, "resource_reservation": 6, "resource_pending": 4} {
		of("kueue_cluster_queue_"+name, devices, "cluster_queue", "research", "resource", "nvidia.com/gpu", "replica_role", "leader")
	}
}

// Labels of a resource, of who waits for it, and of a queue.
const (
	res = `k8s_cluster_name="c1",k8s_resource_name="nvidia.com/gpu",hw_model="NVIDIA H100"`
	wai = `k8s_cluster_name="c1",k8s_namespace_name="ml",gpu_queue_name="research"`
	que = `k8s_cluster_name="c1",cluster_queue="research",resource="nvidia.com/gpu",replica_role="leader"`
)

// capacity is a cluster that has devices to give, and of which none is asked for.
var capacity = map[string]string{
	`gpu_node_devices{gpu_node_device_state="allocatable",k8s_node_name="n1",` + res + `}`: "16x480",
	`gpu_scheduling_fit{gpu_request_size="1",` + res + `}`:                                 "6x480",
	`gpu_scheduling_fit{gpu_request_size="8",` + res + `}`:                                 "0x480",
	`gpu_scheduling_stranded{gpu_stranded_reason="cpu",` + res + `}`:                       "1x480",
	`gpu_scheduling_stranded{gpu_stranded_reason="tainted",` + res + `}`:                   "0x480",
	`kueue_cluster_queue_nominal_quota{flavor="h100",` + que + `}`:                         "8x480",
	`kueue_cluster_queue_resource_usage{flavor="h100",` + que + `}`:                        "8x480",
	`kueue_cluster_queue_resource_reservation{flavor="h100",` + que + `}`:                  "8x480",
	`kueue_cluster_queue_resource_pending{` + que + `}`:                                    "0x480",
}

func asked(reason string, devices string) map[string]string {
	return map[string]string{
		`gpu_scheduling_pending_devices{gpu_pending_reason="` + reason + `",` + wai + `,k8s_resource_name="nvidia.com/gpu"}`: "_x360 " + devices + "x119",
	}
}

// schedulingScenarios are what fires about scheduling, beside a healthy fleet.
var schedulingScenarios = map[string]scenario{
	"nothing waits": {nil, nil},
	"pods wait for longer than half an hour": {
		map[string]string{`gpu_scheduling_pending_age_max_seconds{gpu_pending_reason="insufficient_gpu",` + wai + `}`: "_x360 1700+30x119"}, []string{"GPUPodsWait"},
	},
	"pods wait for a volume": {
		map[string]string{`gpu_scheduling_pending_age_max_seconds{gpu_pending_reason="volume",` + wai + `}`: "_x360 1700+30x119"}, nil,
	},
	"more is asked for than is free":     {asked("insufficient_gpu", "8"), nil},
	"free devices are spread over nodes": {asked("insufficient_gpu", "7"), []string{"GPUsFreeButNotUsable"}},
	"what is free is tainted":            {with(asked("taint", "8"), map[string]string{`gpu_scheduling_stranded{gpu_stranded_reason="tainted",` + res + `}`: from("0", "1")}), []string{"GPUsFreeButNotUsable"}},
	"what is gated waits for another":    {asked("gated", "4"), nil},
	"a queue is above its quota": {
		map[string]string{`kueue_cluster_queue_resource_pending{` + que + `}`: from("0", "4")}, []string{"GPUsFreeButNotUsable"},
	},
	"a queue waits for more than is free": {
		map[string]string{`kueue_cluster_queue_resource_pending{` + que + `}`: from("0", "9")}, nil,
	},
	"a queue is below its quota": {
		map[string]string{
			`kueue_cluster_queue_resource_pending{` + que + `}`:             from("0", "9"),
			`kueue_cluster_queue_resource_usage{flavor="h100",` + que + `}`: from("8", "6"),
		}, []string{"QueueStarved"},
	},
	"devices are stranded": {
		// For an hour: from before begin.
		map[string]string{`gpu_scheduling_stranded{gpu_stranded_reason="cpu",` + res + `}`: "1x280 2x199"}, []string{"GPUsStranded"},
	},
	"devices are used late": {
		map[string]string{
			`gpu_scheduling_first_use_duration_seconds_bucket{` + wai + `,le="900"}`:  "0x360 0+1x119",
			`gpu_scheduling_first_use_duration_seconds_bucket{` + wai + `,le="3600"}`: "0x360 0+2x119",
			`gpu_scheduling_first_use_duration_seconds_bucket{` + wai + `,le="+Inf"}`: "0x360 0+2x119",
		}, []string{"GPUHeldNotUsed"},
	},
}
