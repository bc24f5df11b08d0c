// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// right is what one component asks of the API.
type right struct {
	group, resource string
	verbs           []string
	namespace       string // empty: all
	who             string
	// dra rights are not needed where there is no DRA.
	dra bool
}

var listAndWatch = []string{"list", "watch"}

// rights are what the components ask for that the configuration uses. Without a
// configuration they are those of a role: config/kubernetes/*-rbac.yaml.
func rights(env probe.Env) []right {
	if env.Role != "" {
		if env.Role == config.RoleGateway {
			return summaryRights("")
		}
		return append([]right{{"", "pods", listAndWatch, "", "dcgm, k8s_attributes", false}}, allocationRights(nil)...)
	}
	var all []right
	for _, d := range env.Config.Exporters() {
		if d.Kubernetes == nil {
			continue
		}
		for _, ns := range orAll(d.Kubernetes.Namespaces) {
			all = append(all, right{"", "pods", listAndWatch, ns, d.Type, false})
		}
	}
	type auth struct {
		AuthType     string   `mapstructure:"auth_type"`
		ExpectedPods string   `mapstructure:"expected_pods"`
		Namespaces   []string `mapstructure:"namespaces"`
		Sharing      []string `mapstructure:"sharing"`
		Filter       struct {
			Namespace string `mapstructure:"namespace"`
		} `mapstructure:"filter"`
	}
	for _, c := range env.Config.Of("processors", "k8s_attributes", "k8sattributes") {
		var cfg auth
		if c.Read(&cfg) == nil && cfg.AuthType != "none" {
			all = append(all, right{"", "pods", listAndWatch, cfg.Filter.Namespace, "k8s_attributes", false})
		}
	}
	for _, c := range env.Config.Allocations() {
		var cfg auth
		if c.Read(&cfg) == nil && cfg.AuthType != "none" {
			all = append(all, allocationRights(cfg.Sharing)...)
		}
	}
	for _, c := range env.Config.Of("processors", "gpu_summary") {
		var cfg auth
		if c.Read(&cfg) != nil || cfg.ExpectedPods != "kubernetes" {
			continue
		}
		for _, ns := range orAll(cfg.Namespaces) {
			all = append(all, summaryRights(ns)...)
		}
	}
	for _, c := range env.Config.Of("receivers", "gpu_scheduling") {
		var cfg auth
		if c.Read(&cfg) == nil && cfg.AuthType != "none" {
			all = append(all, right{"", "nodes", listAndWatch, "", schedulingName, false},
				right{"resource.k8s.io", "resourceslices", listAndWatch, "", schedulingName, true},
				right{"resource.k8s.io", "deviceclasses", listAndWatch, "", schedulingName, true})
			all = append(all, podRights("", schedulingName)...)
		}
	}
	return merge(all)
}

// Components whose rights are those of the gateway.
const (
	summaryName    = "gpu_summary"
	schedulingName = "gpu_scheduling"
)

func allocationRights(sharing []string) []right {
	all := []right{
		{"", "nodes", listAndWatch, "", "gpu_allocation", false},
		{"resource.k8s.io", "resourceslices", listAndWatch, "", "gpu_allocation", true},
		{"resource.k8s.io", "resourceclaims", []string{"get"}, "", "gpu_allocation", true},
	}
	if len(sharing) > 0 {
		all = append(all, right{"", "pods", listAndWatch, "", "gpu_allocation", false})
	}
	if slices.Contains(sharing, names.SharingKoordinator) {
		all = append(all, right{"scheduling.koordinator.sh", "devices", listAndWatch, "", "gpu_allocation", false})
	}
	return all
}

func summaryRights(namespace string) []right { return podRights(namespace, summaryName) }

func podRights(namespace, who string) []right {
	return []right{
		{"", "pods", listAndWatch, namespace, who, false},
		{"resource.k8s.io", "resourceclaims", listAndWatch, namespace, who, true},
	}
}

func orAll(namespaces []string) []string {
	if len(namespaces) == 0 {
		return []string{""}
	}
	return namespaces
}

// merge makes one of the equal rights of several components.
func merge(all []right) []right {
	var merged []right
	for _, r := range all {
		i := slices.IndexFunc(merged, func(m right) bool {
			return m.group == r.group && m.resource == r.resource && m.namespace == r.namespace && slices.Equal(m.verbs, r.verbs)
		})
		switch {
		case i < 0:
			merged = append(merged, r)
		case !slices.Contains(strings.Split(merged[i].who, ", "), r.who):
			merged[i].who += ", " + r.who
		}
	}
	return merged
}

// Rights asks the API server for each right that the components need.
func Rights(ctx context.Context, env probe.Env) []probe.Result {
	if env.Kube.Unused != "" {
		return []probe.Result{probe.New("", probe.Skipped, env.Kube.Unused, "")}
	}
	var results []probe.Result
	for _, r := range rights(env) {
		result, err := allowed(ctx, env.Kube, r)
		if err != nil {
			return append(results, unreached(probe.Result{Subject: "access reviews"}, err))
		}
		results = append(results, result)
	}
	return results
}

// allowed asks the API server whether the account has a right.
func allowed(ctx context.Context, api *kube.Client, r right) (probe.Result, error) {
	subject := r.resource
	if r.group != "" {
		subject += "." + r.group
	}
	if r.namespace != "" {
		subject += " in " + r.namespace
	}
	result := probe.New(subject, probe.OK, fmt.Sprintf("may %s, for %s", strings.Join(r.verbs, " and "), r.who), "")
	var denied []string
	for _, verb := range r.verbs {
		ok, err := api.Allowed(ctx, authorizationv1.ResourceAttributes{Group: r.group, Resource: r.resource, Verb: verb, Namespace: r.namespace})
		if err != nil {
			return result, err
		}
		if !ok {
			denied = append(denied, verb)
		}
	}
	if len(denied) == 0 {
		return result, nil
	}
	result.Status = probe.Fail
	result.Seen = fmt.Sprintf("may not %s, which %s needs", strings.Join(denied, " nor "), r.who)
	file := "agent-rbac.yaml"
	switch {
	case r.who == schedulingName:
		file = "scheduler-rbac.yaml"
	case strings.HasPrefix(r.who, summaryName):
		file = "gateway-rbac.yaml"
	}
	result.Remedy = "give the account a role with these rights: config/kubernetes/" + file + " has them"
	if r.dra {
		result.Status = probe.Warn
		result.Remedy += "; not needed without DRA"
	}
	return result, nil
}
