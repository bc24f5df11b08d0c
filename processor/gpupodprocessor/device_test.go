// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"strings"
	"testing"
)

// The output of the dcgm receiver: one resource per device, the exporter's owner
// labels on it.
func TestAttributesDevices(t *testing.T) {
	const point = `
		metric hw.power gauge W
		300 @10 hw.id=GPU-a`
	for _, tt := range []struct{ name, in, want string }{
		{
			"pod, namespace and container",
			"namespace=ml pod=chat-0 container=main",
			"k8s.container.name=main k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0",
		}, {
			"a pod uid that is there, and labels that name the service",
			"namespace=ml pod=chat-0 container=main pod_uid=u1 pod_label_app=chat pod_label_tier=x",
			"k8s.container.name=main k8s.namespace.name=ml k8s.pod.name=chat-0 k8s.pod.uid=u1 service.name=chat",
		}, {
			"instance before name before app",
			"namespace=ml pod=chat-0 pod_label_app=a pod_label_app_kubernetes_io_name=n pod_label_app_kubernetes_io_instance=i",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=i",
		}, {
			"a service.name that is there stays",
			"namespace=ml pod=chat-0 pod_label_app=chat service.name=mine",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=mine",
		}, {
			"empty labels are absent ones",
			"namespace= pod= container= pod_uid= pod_label_app= vgpu=",
			"",
		}, {
			"empty uid and pod label",
			"namespace=ml pod=chat-0 pod_uid= pod_label_app=",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0",
		}, {
			"a pod without namespace is no identity", "pod=chat-0 container=main", "",
		}, {
			"a namespace without pod is no identity", "namespace=ml", "",
		}, {
			"DCGM 1.x spelling",
			"pod_name=pod1 pod_namespace=default container_name=pod1-ctr",
			"k8s.container.name=pod1-ctr k8s.namespace.name=default k8s.pod.name=pod1 service.name=pod1",
		}, {
			"job and claim stay",
			"namespace=ml pod=chat-0 hpc_job=77 dra_claim_name=c",
			"dra_claim_name=c hpc_job=77 k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0",
		}, {
			"the holders of a shared device are no holder", "dcgm.holders=chat-0", "",
		}, {
			"one replica of a shared device is not the device", "namespace=ml pod=chat-0 vgpu=1", "",
		}, {
			"an identity that is there stays",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 pod=other namespace=other pod_label_app=x",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0",
		}, {
			"labels of the pod that is there name its service",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 pod=chat-0 namespace=ml pod_label_app=chat",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat",
		}, {
			"an identity and a service that are there stay",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=mine pod=chat-0 namespace=ml pod_label_app=chat",
			"k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=mine",
		}, {
			"any UTF-8 value",
			"namespace=größe pod=模型-0 pod_label_app=チャット",
			"k8s.namespace.name=größe k8s.pod.name=模型-0 service.name=チャット",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start(t).expect(
				"resource hw.id=GPU-a hw.type=gpu "+tt.in+point,
				"resource hw.id=GPU-a hw.type=gpu "+tt.want+point)
		})
	}
}

func TestIgnoresExporterLabels(t *testing.T) {
	b := start(t, func(c *Config) { c.ExporterLabels = ExporterLabelsIgnore })
	b.expect(`
		resource hw.id=GPU-a namespace=ml pod=chat-0 container=main pod_label_app=chat
		metric hw.power gauge W
		300 @10 hw.id=GPU-a
		resource service.name=dcgm
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @10 UUID=GPU-b namespace=ml pod=chat-0
		2 @10 UUID=GPU-c namespace=ml pod=chat-1`, `
		resource hw.id=GPU-a
		metric hw.power gauge W
		300 @10 hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @10 UUID=GPU-b hw.id=GPU-b
		resource hw.id=GPU-c hw.type=gpu
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		2 @10 UUID=GPU-c hw.id=GPU-c`)
}

func TestLeavesServiceNameToOthers(t *testing.T) {
	b := start(t, func(c *Config) { c.ServiceName = ServiceNameNone })
	b.expect(`
		resource hw.id=GPU-a namespace=ml pod=chat-0 pod_label_app=chat
		metric hw.power gauge W
		300 @10 hw.id=GPU-a
		resource hw.id=GPU-c k8s.namespace.name=ml k8s.pod.name=chat-2
		metric hw.power gauge W
		300 @10 hw.id=GPU-c
		resource service.name=dcgm
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @10 UUID=GPU-b namespace=ml pod=chat-1 pod_label_app=chat`, `
		resource hw.id=GPU-a k8s.namespace.name=ml k8s.pod.name=chat-0
		metric hw.power gauge W
		300 @10 hw.id=GPU-a
		resource hw.id=GPU-c k8s.namespace.name=ml k8s.pod.name=chat-2
		metric hw.power gauge W
		300 @10 hw.id=GPU-c
		resource hw.id=GPU-b hw.type=gpu k8s.namespace.name=ml k8s.pod.name=chat-1
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		1 @10 UUID=GPU-b hw.id=GPU-b`)
}

// With names: dcgm | both the dcgm receiver leaves all labels on the points of
// DCGM families. A migration must not lose them.
func TestKeepsPointLabelsOfDeviceResources(t *testing.T) {
	start(t).expect(`
		resource hw.id=GPU-a namespace=ml pod=chat-0
		metric DCGM_FI_DEV_GPU_UTIL gauge 1
		55 @10 UUID=GPU-a hw.id=GPU-a pod=chat-0 namespace=ml pod_label_app=chat vgpu= gpu=0`, `
		resource hw.id=GPU-a k8s.namespace.name=ml k8s.pod.name=chat-0 service.name=chat-0
		metric DCGM_FI_DEV_GPU_UTIL gauge 1
		55 @10 UUID=GPU-a gpu=0 hw.id=GPU-a namespace=ml pod=chat-0 pod_label_app=chat vgpu=`)
}

// What is not about a GPU, and what names its owner already, passes unchanged.
func TestLeavesOthersAlone(t *testing.T) {
	const other = `
		resource host.name=n1 service.name=node
		metric system.cpu.time counter s
		5 @10 cpu=0 pod=not-a-holder
		resource host.name=n1 hw.id=fan-1 hw.type=fan pod=x
		metric hw.status sum 1
		1 @10 hw.id=fan-1
		resource service.name=shop k8s.pod.name=shop-0
		metric orders counter 1
		5 @10 uuid=0b7e-41 pod=not-a-holder
		resource host.name=n1
		metric hw.status sum 1
		1 @10 hw.id=psu-1 hw.type=power_supply pod=x
		resource k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=chat-0
		metric gpu.allocation sum 1
		1 @10 hw.id=GPU-a k8s.resource.name=nvidia.com/gpu
		resource k8s.node.name=n1
		metric gpu.exporter.up sum 1
		1 @10 server.address=10.0.0.1
		resource empty=yes`
	start(t).expect(other, other)
	start(t).expect("", "")
	start(t).expect(strings.Repeat("resource\n", 3), strings.Repeat("resource\n", 3))
}
