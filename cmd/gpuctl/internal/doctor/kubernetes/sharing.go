// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

// shared looks for pods of the node of which a scheduler that shares boards has written what
// they have, and whether gpu_allocation reads that. Without such pods there is no result.
func shared(ctx context.Context, env probe.Env, node string) []probe.Result {
	configured, asks := map[string]bool{}, false
	for _, c := range env.Config.Allocations() {
		var cfg struct {
			AuthType string   `mapstructure:"auth_type"`
			Sharing  []string `mapstructure:"sharing"`
		}
		if c.Read(&cfg) != nil {
			continue
		}
		asks = asks || cfg.AuthType != "none"
		for _, name := range cfg.Sharing {
			configured[name] = true
		}
	}
	if !asks {
		return nil
	}
	pods, err := env.Kube.Pods(ctx, metav1.NamespaceAll, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, Limit: kube.MaxPods})
	if err != nil {
		return nil // rbac reports a right that is missing
	}
	found := map[string]int{}
	for i := range pods {
		for _, s := range sharing.Detect(&pods[i]) {
			found[s.Name]++
		}
	}
	var results []probe.Result
	for _, name := range slices.Sorted(maps.Keys(found)) {
		seen := fmt.Sprintf("%s shares boards among pods of the node (%d)", name, found[name])
		if configured[name] {
			results = append(results, probe.New("sharing", probe.OK, seen+", and gpu_allocation reads which", ""))
			continue
		}
		all := append(slices.Sorted(maps.Keys(configured)), name)
		results = append(results, probe.New("sharing", probe.Warn, seen+", which gpu_allocation does not read: which part of which board they have is not known",
			fmt.Sprintf("set sharing: [%s] of gpu_allocation (chart: sharing)", strings.Join(all, ", "))))
	}
	return results
}
