// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import "testing"

// A page that the stock prometheus receiver scraped: one resource, which is the
// exporter's, and devices and owners in labels.
func TestSplitsScrapedPages(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{{
		"a resource a device; the exporter's identity goes, the node's stays", `
		resource service.name=dcgm service.instance.id=10.0.0.1:9400 server.address=10.0.0.1 server.port=9400 url.scheme=http k8s.pod.name=exporter-x k8s.namespace.name=mon k8s.container.name=exporter k8s.daemonset.name=exporter k8s.node.name=n1 k8s.cluster.name=c1 host.name=h1 cloud.region=eu
		scope prometheus
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		10 @10 UUID=GPU-a gpu=0 modelName=H100 pod=chat-0 namespace=ml container=main pod_uid=u1 pod_label_app=chat
		20 @10 UUID=GPU-b gpu=1 modelName=H100 pod= namespace= container=
		metric DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter mJ
		7 @10 UUID=GPU-a gpu=0 pod=chat-0 namespace=ml container=main pod_uid=u1 pod_label_app=chat
		metric up gauge 1
		1 @10`, `
		resource cloud.region=eu host.name=h1 k8s.cluster.name=c1 k8s.container.name=exporter k8s.daemonset.name=exporter k8s.namespace.name=mon k8s.node.name=n1 k8s.pod.name=exporter-x server.address=10.0.0.1 server.port=9400 service.instance.id=10.0.0.1:9400 service.name=dcgm url.scheme=http
		scope prometheus
		metric up gauge 1
		1 @10
		resource cloud.region=eu host.name=h1 hw.id=GPU-a hw.type=gpu k8s.cluster.name=c1 k8s.container.name=main k8s.namespace.name=ml k8s.node.name=n1 k8s.pod.name=chat-0 k8s.pod.uid=u1 service.name=chat
		scope prometheus
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		10 @10 UUID=GPU-a gpu=0 hw.id=GPU-a modelName=H100
		metric DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter mJ
		7 @10 UUID=GPU-a gpu=0 hw.id=GPU-a
		resource cloud.region=eu host.name=h1 hw.id=GPU-b hw.type=gpu k8s.cluster.name=c1 k8s.node.name=n1
		scope prometheus
		metric DCGM_FI_DEV_GPU_UTIL gauge %
		20 @10 UUID=GPU-b gpu=1 hw.id=GPU-b modelName=H100`,
	}, {
		"every spelling of the device", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 hw.id=GPU-a
		2 @10 UUID=GPU-b
		3 @10 uuid=GPU-c
		4 @10 gpu_uuid=GPU-d nvlink=0`, `
		resource hw.id=GPU-a hw.type=gpu
		metric m gauge 1
		1 @10 hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu
		metric m gauge 1
		2 @10 UUID=GPU-b hw.id=GPU-b
		resource hw.id=GPU-c hw.type=gpu
		metric m gauge 1
		3 @10 hw.id=GPU-c uuid=GPU-c
		resource hw.id=GPU-d hw.type=gpu
		metric m gauge 1
		4 @10 gpu_uuid=GPU-d hw.id=GPU-d nvlink=0`,
	}, {
		"a label that only some points have names the service, whichever comes first", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 UUID=GPU-a link=0 pod=p namespace=n
		2 @10 UUID=GPU-a link=1 pod=p namespace=n pod_label_app=chat
		3 @10 UUID=GPU-a link=2 pod=p namespace=n`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=p service.name=chat
		metric m gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a link=0
		2 @10 UUID=GPU-a hw.id=GPU-a link=1
		3 @10 UUID=GPU-a hw.id=GPU-a link=2`,
	}, {
		"a third holder does not make a shared device his", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 UUID=GPU-a link=0 pod=p namespace=n
		2 @10 UUID=GPU-a link=1 pod=q namespace=n
		3 @10 UUID=GPU-a link=2 pod=r namespace=n`, `
		resource hw.id=GPU-a hw.type=gpu
		metric m gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a link=0
		2 @10 UUID=GPU-a hw.id=GPU-a link=1
		3 @10 UUID=GPU-a hw.id=GPU-a link=2`,
	}, {
		"every spelling of the holder", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 UUID=GPU-a pod=p namespace=n container=c
		2 @10 UUID=GPU-b pod_name=p pod_namespace=n container_name=c
		3 @10 UUID=GPU-c exported_pod=p exported_namespace=n exported_container=c exported_pod_uid=u`, `
		resource hw.id=GPU-a hw.type=gpu k8s.container.name=c k8s.namespace.name=n k8s.pod.name=p service.name=p
		metric m gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu k8s.container.name=c k8s.namespace.name=n k8s.pod.name=p service.name=p
		metric m gauge 1
		2 @10 UUID=GPU-b hw.id=GPU-b
		resource hw.id=GPU-c hw.type=gpu k8s.container.name=c k8s.namespace.name=n k8s.pod.name=p k8s.pod.uid=u service.name=p
		metric m gauge 1
		3 @10 UUID=GPU-c hw.id=GPU-c`,
	}, {
		"MIG instances, named by UUID and instance or by hw.id, and their parent", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 UUID=GPU-a GPU_I_ID=7 GPU_I_PROFILE=1g.5gb pod=p namespace=n
		2 @10 UUID=GPU-a GPU_I_ID=8 GPU_I_PROFILE=1g.5gb
		3 @10 UUID=GPU-a
		4 @10 hw.id=GPU-a/7 other=x`, `
		resource hw.id=GPU-a/7 hw.parent=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=p service.name=p
		metric m gauge 1
		1 @10 GPU_I_ID=7 GPU_I_PROFILE=1g.5gb UUID=GPU-a hw.id=GPU-a/7
		4 @10 hw.id=GPU-a/7 other=x
		resource hw.id=GPU-a/8 hw.parent=GPU-a hw.type=gpu
		metric m gauge 1
		2 @10 GPU_I_ID=8 GPU_I_PROFILE=1g.5gb UUID=GPU-a hw.id=GPU-a/8
		resource hw.id=GPU-a hw.type=gpu
		metric m gauge 1
		3 @10 UUID=GPU-a hw.id=GPU-a`,
	}, {
		"links carry no pod: they belong to whom the device belongs", `
		resource service.name=dcgm
		metric links gauge 1
		1 @10 gpu_uuid=GPU-a nvlink=0
		metric util gauge 1
		2 @10 UUID=GPU-a pod=p namespace=n pod_label_app=chat`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=p service.name=chat
		metric links gauge 1
		1 @10 gpu_uuid=GPU-a hw.id=GPU-a nvlink=0
		metric util gauge 1
		2 @10 UUID=GPU-a hw.id=GPU-a`,
	}, {
		"a shared device has one series, without holder", `
		resource service.name=dcgm
		metric util gauge 1
		50 @10 UUID=GPU-a pod=p namespace=n vgpu=0
		50 @10 UUID=GPU-a pod=q namespace=n vgpu=1
		metric xid gauge 1
		0 @10 UUID=GPU-a pod=p namespace=n vgpu=0 err_code=0
		31 @10 UUID=GPU-a pod=p namespace=n vgpu=0 err_code=31
		0 @10 UUID=GPU-a pod=q namespace=n vgpu=1 err_code=0
		31 @10 UUID=GPU-a pod=q namespace=n vgpu=1 err_code=31`, `
		resource hw.id=GPU-a hw.type=gpu
		metric util gauge 1
		50 @10 UUID=GPU-a hw.id=GPU-a
		metric xid gauge 1
		0 @10 UUID=GPU-a err_code=0 hw.id=GPU-a
		31 @10 UUID=GPU-a err_code=31 hw.id=GPU-a`,
	}, {
		"shared without the replicas' numbers", `
		resource service.name=dcgm
		metric util gauge 1
		50 @10 UUID=GPU-a pod=p namespace=n
		50 @10 UUID=GPU-a pod=q namespace=n`, `
		resource hw.id=GPU-a hw.type=gpu
		metric util gauge 1
		50 @10 UUID=GPU-a hw.id=GPU-a`,
	}, {
		"two containers of one pod share too", `
		resource service.name=dcgm
		metric util gauge 1
		50 @10 UUID=GPU-a pod=p namespace=n container=a
		50 @10 UUID=GPU-a pod=p namespace=n container=b`, `
		resource hw.id=GPU-a hw.type=gpu
		metric util gauge 1
		50 @10 UUID=GPU-a hw.id=GPU-a`,
	}, {
		"partial label sets are no identity; job and claim stay on points", `
		resource service.name=dcgm
		metric m gauge 1
		1 @10 UUID=GPU-a pod=p container=c
		2 @10 UUID=GPU-b namespace=n hpc_job=77 dra_claim_name=c`, `
		resource hw.id=GPU-a hw.type=gpu
		metric m gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a
		resource hw.id=GPU-b hw.type=gpu
		metric m gauge 1
		2 @10 UUID=GPU-b dra_claim_name=c hpc_job=77 hw.id=GPU-b`,
	}, {
		"labels of the scraped target name no service", `
		resource service.name=x
		metric m gauge 1
		1 @10 UUID=GPU-a pod=p namespace=n app=dcgm-exporter app_kubernetes_io_name=dcgm-exporter`, `
		resource hw.id=GPU-a hw.type=gpu k8s.namespace.name=n k8s.pod.name=p service.name=p
		metric m gauge 1
		1 @10 UUID=GPU-a app=dcgm-exporter app_kubernetes_io_name=dcgm-exporter hw.id=GPU-a`,
	}, {
		"points without a device stay where they are, between the others", `
		resource service.name=dcgm k8s.pod.name=exporter-x
		metric a gauge 1
		1 @10 UUID=GPU-a
		2 @10 pod=kept
		metric b gauge 1
		3 @10 UUID=GPU-a`, `
		resource k8s.pod.name=exporter-x service.name=dcgm
		metric a gauge 1
		2 @10 pod=kept
		resource hw.id=GPU-a hw.type=gpu
		metric a gauge 1
		1 @10 UUID=GPU-a hw.id=GPU-a
		metric b gauge 1
		3 @10 UUID=GPU-a hw.id=GPU-a`,
	}, {
		"all kinds of metrics, in two scopes", `
		resource service.name=dcgm
		scope one
		metric h histogram s
		1 @10 UUID=GPU-a
		metric e exponential s
		2 @10 UUID=GPU-a
		scope two
		metric s summary s
		3 @10 UUID=GPU-a
		metric u sum By
		4 @10 UUID=GPU-a`, `
		resource hw.id=GPU-a hw.type=gpu
		scope one
		metric h histogram s
		1 @10 UUID=GPU-a hw.id=GPU-a
		metric e exponential s
		2 @10 UUID=GPU-a hw.id=GPU-a
		scope two
		metric s summary s
		3 @10 UUID=GPU-a hw.id=GPU-a
		metric u sum By
		4 @10 UUID=GPU-a hw.id=GPU-a`,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			start(t).expect(tt.in, tt.want)
		})
	}
}
