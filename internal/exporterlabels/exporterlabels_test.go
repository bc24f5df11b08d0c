// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterlabels

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClassifyEverySpelling(t *testing.T) {
	for want, keys := range map[Label][]string{
		UUID:        {"UUID", "uuid", "gpu_uuid"},
		Index:       {"gpu"},
		PCIAddress:  {"pci_bus_id"},
		Device:      {"device"},
		Model:       {"modelName", "model_name"},
		Host:        {"Hostname", "hostname"},
		MIGInstance: {"GPU_I_ID"},
		MIGProfile:  {"GPU_I_PROFILE"},
		Field:       {"DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_SERIAL"},
		Scrape:      {"job", "instance", "err_code", "err_msg"},
		Pod:         {"pod", "pod_name", "exported_pod"},
		Namespace:   {"namespace", "pod_namespace", "exported_namespace"},
		Container:   {"container", "container_name", "exported_container"},
		PodUID:      {"pod_uid"},
		PodLabel:    {"pod_label_app", "pod_label_app_kubernetes_io_name"},
		VGPU:        {"vgpu"},
		HPCJob:      {"hpc_job"},
		DRA:         {"dra_claim_name", "dra_mig_device_uuid"},
		Other:       {"", "xid", "pod_", "Pod", "GPU", "window_size_in_ms", "nvlink"},
	} {
		for _, key := range keys {
			assert.Equal(t, want, Classify(key), key)
			assert.Equal(t, want >= Pod, Classify(key).NamesOwner(), key)
		}
	}
	assert.True(t, Exported("exported_pod"))
	assert.False(t, Exported("pod"))
}

func TestGaudi(t *testing.T) {
	for key, want := range map[string]Label{
		"Serial": Field, "driver": Field, "fit": Field, "UUID": Scrape, "id": Index, "device": Device,
		"pod_name": Pod, "pod_namespace": Namespace, "pod": Scrape, "namespace": Scrape, "port": Other, "job": Scrape,
	} {
		assert.Equal(t, want, Gaudi(key), key)
	}
}

func TestAMD(t *testing.T) {
	for key, want := range map[string]Label{
		"gpu_id": Index, "GPU_ID": Index, "serial_number": Field, "SERIAL_NUMBER": Field, "job_id": HPCJob,
		"xcc_index": Other, "clock_type": Other, "severity": Other, "pod": Pod, "exported_namespace": Namespace, "hostname": Host,
		"gpu_uuid": Scrape, "gpu_partition_id": Scrape, "kfd_process_id": Scrape, "process_id": Scrape, "cluster_name": Scrape, "team": Scrape, "job": Scrape,
	} {
		assert.Equal(t, want, AMD(key), key)
	}
}
