package names

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInt: what is counted is whole, what is measured or shared is not.
func TestInt(t *testing.T) {
	for _, m := range []Metric{GPUMemoryUsage, GPUXIDErrors, GPUXIDLast, ExporterUp, PodState} {
		assert.True(t, m.Int(), m.Name)
	}
	for _, m := range []Metric{GPUUtilization, HwEnergy, GPUPCIeThroughput, GPUAllocation, UsageCost, GPUPrice, GPUTrainingThroughput, TrainingLoss} {
		assert.False(t, m.Int(), m.Name)
	}
}

// The constants are names of events that a rule has: one that is not in the list could
// not be selected by a webhook.
func TestEventsAreThoseOfRules(t *testing.T) {
	source, err := os.ReadFile("events.go")
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^\tEvent\w+ += "(gpu\..+)"`).FindAllSubmatch(source, -1) {
		all = append(all, string(m[1]))
	}
	assert.NotEmpty(t, all)
	assert.Subset(t, Events(), all)
}

// The names that dashboards, rules and the store read, by kind and unit.
func TestPrometheus(t *testing.T) {
	for want, m := range map[string]Metric{
		"hw_gpu_utilization_ratio":                    GPUUtilization,
		"hw_gpu_memory_usage_bytes":                   GPUMemoryUsage,
		"gpu_throttle_active":                         GPUThrottleActive,
		"gpu_throttle_duration_seconds_total":         GPUThrottleDuration,
		"gpu_pcie_throughput_bytes_per_second":        GPUPCIeThroughput,
		"gpu_service_pods":                            ServicePods,
		"gpu_xid_last":                                GPUXIDLast,
		"gen_ai_server_time_to_first_token_seconds":   GenAITimeToFirstToken,
		"inference_server_requests":                   InferenceRequests,
		"inference_server_kv_cache_utilization_ratio": InferenceKVCacheUtilization,
		"inference_server_tokens_total":               InferenceTokens,
		"inference_server_requests_finished_total":    InferenceRequestsFinished,
		"inference_server_request_tokens":             InferenceRequestTokens,
		"gpu_usage_held_seconds_total":                UsageHeld,
		"gpu_usage_cost_total":                        UsageCost,
		"gpu_usage_idle_cost_total":                   UsageIdleCost,
		"gpu_usage_energy_joules_total":               UsageEnergy,
		"gpu_usage_carbon_grams_total":                UsageCarbon,
		"gpu_capacity_time_seconds_total":             CapacityTime,
		"gpu_price_per_hour":                          GPUPrice,
		"gpu_budget_used_ratio":                       BudgetUsed,
		"gpu_budget_limit_cost":                       BudgetLimitCost,
		"gpu_budget_limit_time_seconds":               BudgetLimitTime,
		"training_loss":                               TrainingLoss,
		"training_step_duration_seconds":              TrainingStepDuration,
		"training_tokens_total":                       TrainingTokens,
		"gpu_training_mfu_ratio":                      GPUTrainingMFU,
		"gpu_training_throughput_per_second":          GPUTrainingThroughput,
	} {
		assert.Equal(t, want, m.Prometheus())
	}
}

func TestOfDevices(t *testing.T) {
	for metric, want := range map[string]bool{
		GPUXIDErrors.Name: true, HwPower.Name: true, ExporterUp.Name: true, DCGMPrefix + "dev_some_field": true,
		"dcgm": false, "http.server.request.duration": false, "": false,
	} {
		assert.Equal(t, want, OfDevices(metric), metric)
	}
}
