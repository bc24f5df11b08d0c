// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
)

const defaultSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

const defaultSysfs = "/sys"

// NewFactory returns the factory of the gpu_allocation receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{
		Config: k8sclient.Config{AuthType: k8sclient.ServiceAccount},
		DRA: DRAConfig{
			Enabled: true,
			Drivers: []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
		},
		ReservationNamespaces: sharing.Reservations(),

		Socket:             defaultSocket,
		SysfsRoot:          defaultSysfs,
		PollInterval:       5 * time.Second,
		CollectionInterval: 15 * time.Second,
		Timeout:            4 * time.Second,
		ResourceNames:      resourcenames.Default(),
		// A node with 110 pods and 64 replicas on each of 8 GPUs answers with
		// about 100 kB.
		MaxMessageSize: 16 << 20,
		MaxContainers:  10_000,
		MaxDevices:     50_000,
	}
}

func createMetrics(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return newReceiver(set, cfg.(*Config), next)
}
