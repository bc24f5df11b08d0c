// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/fleet"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

// ruleInputs are gpu_summary's, by Prometheus' names.
var ruleInputs = []string{
	"hw_gpu_utilization_ratio", "gpu_sm_active_ratio", "gpu_dram_active_ratio", "gpu_pipe_active_ratio",
	"hw_gpu_memory_usage_bytes", "hw_gpu_memory_limit_bytes", "hw_power_watts",
}

// measureRules has a Prometheus server take the fleet's telemetry over OTLP and
// average it with recording rules.
func measureRules(ctx context.Context, w *frame.World) (frame.Figures, error) {
	template, err := fleet.New(true)
	if err != nil {
		return nil, err
	}
	var rules []m
	for _, input := range ruleInputs {
		by := "k8s_namespace_name, service_name"
		if input == "gpu_pipe_active_ratio" {
			by += ", gpu_pipe"
		}
		rules = append(rules, m{
			"record": "service:" + strings.TrimSuffix(input, "_ratio") + ":avg",
			"expr":   fmt.Sprintf("avg by (%s) (avg by (%s, k8s_pod_name) (%s))", by, by, input),
		})
	}
	text, err := json.Marshal(m{"groups": []m{{"name": "services", "interval": "15s", "rules": rules}}})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(w.Work, "rules.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	p, url, err := w.StartPrometheus(ctx, m{
		"rule_files": []string{path},
		"otlp":       m{"promote_resource_attributes": []string{"k8s.cluster.name", "k8s.node.name", "k8s.namespace.name", "k8s.pod.name", "service.name"}},
	}, func(directory string) []string {
		return []string{"--web.enable-otlp-receiver", "--storage.tsdb.path", filepath.Join(directory, "data")}
	})
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	var averages error
	f, err := feed(ctx, w, p.PID, url+"/api/v1/otlp/v1/metrics", template, gatewayNodes, pace, func() {}, func() {
		averages = recorded(ctx, url, "service:hw_gpu_utilization:avg", gatewayNodes/fleet.NodesOfService)
	})
	if err != nil {
		return nil, err
	}
	return f, averages
}

// recorded fails where the rules give no average for as many services as there
// are: then nothing was compared.
func recorded(ctx context.Context, url, record string, services int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/query?query="+neturl.QueryEscape("count("+record+")"), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var parsed struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&parsed); err != nil {
		return err
	}
	got := "0"
	if len(parsed.Data.Result) == 1 {
		got = fmt.Sprint(parsed.Data.Result[0].Value[1])
	}
	if got != strconv.Itoa(services) {
		return fmt.Errorf("the rules give %s averages, not %d", got, services)
	}
	return nil
}
