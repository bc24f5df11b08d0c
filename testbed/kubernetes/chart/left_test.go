// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// everything lists every object of every kind that the cluster has, as
// "resource namespace/name". What the control plane writes down by itself about
// what happens (events, leases) is not in it.
func (a *api) everything(ctx context.Context) (map[string]bool, error) {
	_, lists, err := a.Client().Discovery().ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	all := map[string]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || r.Name == "events" || r.Name == "leases" {
				continue
			}
			objects, err := a.client.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			for _, o := range objects.Items {
				all[r.Name+" "+o.GetNamespace()+"/"+o.GetName()] = true
			}
		}
	}
	return all, nil
}

// leftBehind is what there is now and was not before, but for pods and their
// like that come and go with workloads of others.
func leftBehind(before, now map[string]bool) (left []string) {
	for o := range now {
		if !before[o] && !strings.Contains(o, " "+inference+"/") && !strings.Contains(o, " gpu-operator/") {
			left = append(left, o)
		}
	}
	slices.Sort(left)
	return left
}
