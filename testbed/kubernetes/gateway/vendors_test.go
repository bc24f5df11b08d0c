// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/node"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/ownership"
)

const vendorLabel = "test/vendor"

// mixed are the nodes: their boards, the receiver of their exporter, and the pod label
// by which it finds the exporter.
var mixed = []struct {
	name, receiver, label, exporter string
	options                         node.Options
}{
	{"nvidia", "dcgm", "app", "nvidia-dcgm-exporter", node.Options{Model: "H100", GPUs: 4}},
	{"amd", "amd_gpu", "app.kubernetes.io/name", "metrics-exporter", node.Options{Vendor: &vendors.Node{Model: "MI300X", Boards: 2, Compute: "cpx", Memory: "nps4", Mixed: true}}},
	// A container that does not see KFD's nodes cannot resolve partitions: the labels decide.
	{"amd-2", "amd_gpu", "app.kubernetes.io/name", "metrics-exporter", node.Options{Vendor: &vendors.Node{Model: "MI300X", Boards: 1, Compute: "cpx", Memory: "nps4", Mixed: true, NoKFD: true}}},
	{"gaudi", "gaudi", "app.kubernetes.io/name", "metric-exporter-ds", node.Options{Vendor: &vendors.Node{Model: "Gaudi3", Boards: 4}}},
	{"intel", "intel_gpu", "app.kubernetes.io/name", "xpumd", node.Options{Vendor: &vendors.Node{Model: "B60", Boards: 4, Version: "2"}}},
}

// request is a Deployment: its pods, what each asks for, and its service.
type request struct {
	name, resource, service string
	pods, devices           int64
}

// requests are the Deployments.
var requests = []request{
	{"train", "nvidia.com/gpu", "train", 1, 2},
	{"chat-amd", "amd.com/cpx_nps4", "chat", 10, 2}, // more than one of the nodes has
	{"chat-gaudi", "habana.ai/gaudi", "chat", 4, 1},
	{"media", "gpu.intel.com/xe", "media", 2, 1},
}

// A cluster with boards of four vendors: every device has its owner, a service over two
// vendors is one, and what a node has no exporter of is not there.
func TestVendors(t *testing.T) {
	w := startWorld(t, 25*time.Second) // Gaudi's exporter bears a scrape in ten seconds
	agents := w.account("agent-rbac.yaml")
	for _, m := range mixed {
		m.options.Name, m.options.Labels = m.name, map[string]string{vendorLabel: m.receiver}
		n, err := node.Start(t.Context(), w.Cluster, m.options)
		require.NoError(t, err)
		t.Cleanup(n.Stop)
		if m.name != "amd-2" {
			w.exporters(m.exporter, m.label, m.options.Labels)
		}
		w.nodes = append(w.nodes, &member{Node: n, receiver: m.receiver})
	}
	for _, n := range w.nodes {
		w.startAgent(n, agents, []string{"vendors.yaml"}, "SYSFS_ROOT="+n.Sysfs())
	}
	for _, n := range w.nodes {
		require.NoError(t, n.agent.WaitReady(t.Context()))
	}
	w.deploy(requests...)
	reports := func(name string, pods float64) func(map[string]service) error {
		return func(s map[string]service) error { return s[name].is(0, pods, 0) }
	}
	allReport := func(s map[string]service) error {
		return errors.Join(reports("train", 1)(s), reports("chat", 14)(s), reports("media", 2)(s))
	}
	w.wait("all services are whole", 0, allReport)

	t.Run("owners", func(t *testing.T) {
		w.t = t
		from := w.out.Len()
		seen := map[string]bool{} // devices with their owner
		wrong := map[string]string{}
		w.eventually("every device has its owner", func(context.Context) error {
			for _, p := range w.out.Since(from) {
				w.judgeOwner(&p, seen, wrong)
			}
			for _, n := range w.nodes {
				for device := range n.Truth().Owners {
					if !seen[device] {
						return fmt.Errorf("%s on %s", device, n.Name())
					}
				}
			}
			return nil
		})
		assert.Empty(t, wrong)
	})
	t.Run("a node has nothing of a vendor without its exporter", func(t *testing.T) {
		ups := map[string]map[string]bool{}
		for _, p := range w.out.Since(0) {
			if p.Device != "" && p.Node != "" && p.Metric != names.GPUAllocation.Name { // which has ids that cannot be resolved
				assert.True(t, w.hasDevice(p.Node, p.Device), "%s %s on %s", p.Metric, p.Device, p.Node)
			}
			if p.Metric == names.ExporterUp.Name {
				if ups[p.Node] == nil {
					ups[p.Node] = map[string]bool{}
				}
				ups[p.Node][p.Description] = true
			}
		}
		for _, n := range w.nodes {
			assert.Len(t, ups[n.Name()], 1, "%s has one exporter: %v", n.Name(), ups[n.Name()])
		}
	})
	t.Run("one vendor's exporter without devices", func(t *testing.T) {
		w.t = t
		from, gaudi := w.out.Len(), w.nodes[3]
		fault, err := gaudi.Others().StartFault(vendors.Fault{Node: gaudi.Name(), Kind: vendors.EmptyPage})
		require.NoError(t, err)
		w.wait("chat is partial", from, func(s map[string]service) error { return s["chat"].is(1, 10, 4) })
		w.waitForStates("chat", "raised")
		from = w.out.Len()
		require.NoError(t, gaudi.Others().EndFault(fault))
		w.wait("all services are whole", from, allReport)
		w.waitForStates("chat", "raised", "cleared")
		assert.Empty(t, w.events.of("train"))
		assert.Empty(t, w.events.of("media"))
	})
	t.Run("devices that are given back have no owner", func(t *testing.T) {
		w.t = t
		none := int32(0)
		scale, err := w.Client().AppsV1().Deployments(namespace).GetScale(t.Context(), "chat-amd", metav1.GetOptions{})
		require.NoError(t, err)
		scale.Spec.Replicas = none
		_, err = w.Client().AppsV1().Deployments(namespace).UpdateScale(t.Context(), "chat-amd", scale, metav1.UpdateOptions{})
		require.NoError(t, err)
		amd := w.nodes[1]
		w.eventually("the kubelet has them back", func(context.Context) error {
			if n := len(amd.Truth().Owners); n > 0 {
				return fmt.Errorf("%d are held", n)
			}
			return nil
		})
		from := w.out.Len()
		w.eventually("no partition has an owner", func(context.Context) error {
			points := w.out.Since(from)
			from += len(points)
			owned, partitions := 0, 0
			for _, p := range points {
				if p.Node == "amd" && p.Metric == names.GPUUtilization.Name && !p.Ended && p.Parent != "" {
					partitions++
					if p.Owner.Pod != "" {
						owned++
					}
				}
			}
			if partitions < 16 || owned > 0 {
				return fmt.Errorf("%d of %d have one", owned, partitions)
			}
			return nil
		})
	})
	t.Run("MIG instances by their UUIDs", func(t *testing.T) { w.instances(t, agents) })
}

// deploy creates Deployments and waits until their pods run. Those of one service
// have it as an annotation.
func (w *world) deploy(requests ...request) {
	w.t.Helper()
	want := 0
	var apps []string
	for _, r := range requests {
		want += int(r.pods)
		apps = append(apps, r.name)
		replicas, labels := int32(r.pods), map[string]string{"test": r.name}
		_, err := w.Client().AppsV1().Deployments(namespace).Create(w.t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: r.name},
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(r.name), Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"resource.opentelemetry.io/service.name": r.service}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/" + r.name, Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceName(r.resource): *resource.NewQuantity(r.devices, resource.DecimalSI)},
				}}}},
			}},
		}, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
	w.eventually("all pods run", func(ctx context.Context) error {
		list, err := w.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: "status.phase=Running", LabelSelector: "test in (" + strings.Join(apps, ",") + ")",
		})
		if err == nil && len(list.Items) != want {
			err = fmt.Errorf("%d of %d run", len(list.Items), want)
		}
		return err
	})
}

// judgeOwner notes a device whose point names its owner, or another.
func (w *world) judgeOwner(p *ownership.Point, seen map[string]bool, wrong map[string]string) {
	if p.Ended || p.Device == "" || p.Metric == names.GPUAllocation.Name || strings.HasPrefix(p.Metric, "gpu.service.") || p.Owner.Pod == "" {
		return
	}
	for _, n := range w.nodes {
		if n.Name() != p.Node {
			continue
		}
		owners := n.Truth().Owners[p.Device]
		if len(owners) == 1 && owners[0].Pod.Name == p.Owner.Pod && owners[0].Container == p.Owner.Container {
			seen[p.Device] = true
		} else {
			wrong[p.Device] = fmt.Sprintf("%s of %s is said to be %v's, want %v", p.Metric, n.Name(), p.Owner, owners)
		}
	}
}

// hasDevice is whether a node has a device, or a board of which it is a part.
func (w *world) hasDevice(name, device string) bool {
	for _, n := range w.nodes {
		if n.Name() != name {
			continue
		}
		if others := n.Others(); others != nil {
			for _, d := range others.TruthAt(time.Now()).Nodes[0].Devices {
				if d.ID == device {
					return true
				}
			}
			return false
		}
		return strings.HasPrefix(device, "GPU-") && len(device) == len("GPU-00000000-0000-0000-0000-000000000000")
	}
	return false
}
