// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
func (in *installation) rights() []right {
	if in.remote {
		if in.Role == roleGateway {
			return summaryRights("")
		}
		return append([]right{{"", "pods", listAndWatch, "", "dcgm, k8s_attributes", false}}, allocationRights()...)
	}
	var all []right
	for _, d := range in.dcgm() {
		if d.Kubernetes == nil {
			continue
		}
		for _, ns := range orAll(d.Kubernetes.Namespaces) {
			all = append(all, right{"", "pods", listAndWatch, ns, "dcgm", false})
		}
	}
	type auth struct {
		AuthType     string   `mapstructure:"auth_type"`
		ExpectedPods string   `mapstructure:"expected_pods"`
		Namespaces   []string `mapstructure:"namespaces"`
		Filter       struct {
			Namespace string `mapstructure:"namespace"`
		} `mapstructure:"filter"`
	}
	for _, c := range in.of("processors", "k8s_attributes", "k8sattributes") {
		var cfg auth
		if c.read(&cfg) == nil && cfg.AuthType != "none" {
			all = append(all, right{"", "pods", listAndWatch, cfg.Filter.Namespace, "k8s_attributes", false})
		}
	}
	for _, c := range in.allocations() {
		var cfg auth
		if c.read(&cfg) == nil && cfg.AuthType != "none" {
			all = append(all, allocationRights()...)
		}
	}
	for _, c := range in.of("processors", "gpu_summary") {
		var cfg auth
		if c.read(&cfg) != nil || cfg.ExpectedPods != "kubernetes" {
			continue
		}
		for _, ns := range orAll(cfg.Namespaces) {
			all = append(all, summaryRights(ns)...)
		}
	}
	return merge(all)
}

func allocationRights() []right {
	return []right{
		{"", "nodes", listAndWatch, "", "gpu_allocation", false},
		{"resource.k8s.io", "resourceslices", listAndWatch, "", "gpu_allocation", true},
		{"resource.k8s.io", "resourceclaims", []string{"get"}, "", "gpu_allocation", true},
	}
}

func summaryRights(namespace string) []right {
	return []right{
		{"", "pods", listAndWatch, namespace, "gpu_summary", false},
		{"resource.k8s.io", "resourceclaims", listAndWatch, namespace, "gpu_summary", true},
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

func (in *installation) checkRBAC(ctx context.Context) []Result {
	if in.kube.connect == nil {
		return []Result{{"rbac", "", Skipped, in.kube.unused, ""}}
	}
	var results []Result
	for _, r := range in.rights() {
		result, err := in.allowed(ctx, r)
		if err != nil {
			return append(results, unreached(Result{Check: "rbac", Subject: "access reviews"}, err))
		}
		results = append(results, result)
	}
	return results
}

// review is a SelfSubjectAccessReview.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		ResourceAttributes reviewed `json:"resourceAttributes"`
	} `json:"spec"`
	Status struct {
		Allowed bool `json:"allowed"`
	} `json:"status"`
}

type reviewed struct {
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Verb      string `json:"verb"`
	Namespace string `json:"namespace,omitempty"`
}

// allowed asks the API server whether the account may.
func (in *installation) allowed(ctx context.Context, r right) (Result, error) {
	subject := r.resource
	if r.group != "" {
		subject += "." + r.group
	}
	if r.namespace != "" {
		subject += " in " + r.namespace
	}
	result := Result{"rbac", subject, OK, fmt.Sprintf("may %s, for %s", strings.Join(r.verbs, " and "), r.who), ""}
	var denied []string
	for _, verb := range r.verbs {
		ask := review{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
		ask.Spec.ResourceAttributes = reviewed{r.group, r.resource, verb, r.namespace}
		var got review
		if _, err := in.kube.ask(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", nil, ask, &got); err != nil {
			return result, err
		}
		if !got.Status.Allowed {
			denied = append(denied, verb)
		}
	}
	if len(denied) == 0 {
		return result, nil
	}
	result.Status = Fail
	result.Seen = fmt.Sprintf("may not %s, which %s needs", strings.Join(denied, " nor "), r.who)
	file := "agent-rbac.yaml"
	if r.who == "gpu_summary" {
		file = "gateway-rbac.yaml"
	}
	result.Remedy = "give the account a role with these rights: config/kubernetes/" + file + " has them"
	if r.dra {
		result.Status = Warn
		result.Remedy += "; not needed without DRA"
	}
	return result, nil
}
