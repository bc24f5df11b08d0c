// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/metadata"
)

func TestLoadConfig(t *testing.T) {
	for name, want := range map[string]*Config{
		"": {
			Config: k8sclient.Config{AuthType: k8sclient.ServiceAccount},
			DRA:    DRAConfig{Enabled: true, Drivers: []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"}},

			ReservationNamespaces: []string{"kai-resource-reservation", "runai-reservation"},

			Socket:             "/var/lib/kubelet/pod-resources/kubelet.sock",
			SysfsRoot:          "/sys",
			NodeName:           "node-a",
			PollInterval:       5 * time.Second,
			CollectionInterval: 15 * time.Second,
			Timeout:            4 * time.Second,
			ResourceNames:      resourcenames.Default(),
			MaxMessageSize:     16 << 20,
			MaxContainers:      10_000,
			MaxDevices:         50_000,
		},
		"all": {
			Config: k8sclient.Config{AuthType: k8sclient.KubeConfig, Context: "staging"},
			DRA:    DRAConfig{Drivers: []string{"gpu.example.com"}},

			NodeLabels: []string{"team", "example.com/rack"},
			NodeInfo: NodeInfoConfig{
				CapacityTypeLabel: "example.com/capacity", NodePoolLabel: "example.com/pool",
				HostType: "dgx-h100", Region: "eu-north1", CapacityType: "reserved", NodePool: "lab",
				Labels: map[string]string{"example.com/owner": "ml"},
			},
			Sharing: []string{"hami", "kai"}, ReservationNamespaces: []string{"gpu-reservations"},
			Socket:             "/var/lib/k0s/kubelet/pod-resources/kubelet.sock",
			SysfsRoot:          "/host/sys",
			NodeName:           "node-b",
			PodNamespace:       "monitoring",
			PodName:            "agent-x",
			ClusterName:        "prod",
			PollInterval:       2 * time.Second,
			CollectionInterval: 30 * time.Second,
			Timeout:            time.Second,
			ResourceNames:      []string{"nvidia.com/gpu", "example.com/npu-*"},
			MaxMessageSize:     4 << 20,
			MaxContainers:      500,
			MaxDevices:         1000,
		},
	} {
		t.Run("gpu_allocation/"+name, func(t *testing.T) {
			conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
			require.NoError(t, err)
			sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, validate(cfg))
		})
	}
}

// validate does what a Collector does: it asks what is embedded by itself.
func validate(c *Config) error { return errors.Join(c.Config.Validate(), c.Validate()) }

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Config)
		want   []string // key and remedy
	}{
		"no socket":            {func(c *Config) { c.Socket = "" }, []string{"socket:", defaultSocket}},
		"sysfs is relative":    {func(c *Config) { c.SysfsRoot = "sys" }, []string{"sysfs_root:", "\"sys\"", "absolute path", defaultSysfs}},
		"socket with scheme":   {func(c *Config) { c.Socket = "unix:///var/lib/kubelet.sock" }, []string{"socket:", "without a scheme"}},
		"socket is relative":   {func(c *Config) { c.Socket = "kubelet.sock" }, []string{"socket:", "absolute path"}},
		"socket is too long":   {func(c *Config) { c.Socket = "/" + strings.Repeat("x", 107) }, []string{"socket:", "108", "shorter"}},
		"no node":              {func(c *Config) { c.NodeName = "" }, []string{"node_name:", "${env:K8S_NODE_NAME}", "spec.nodeName", "optional: true"}},
		"node with slash":      {func(c *Config) { c.NodeName = "a/b" }, []string{"node_name:", "${env:K8S_NODE_NAME}"}},
		"half a pod":           {func(c *Config) { c.PodName = "agent-x" }, []string{"pod_namespace, pod_name:", "metadata.name", "set both"}},
		"polls too often":      {func(c *Config) { c.PollInterval = 10 * time.Millisecond }, []string{"poll_interval:", "1s to 1m"}},
		"polls too seldom":     {func(c *Config) { c.PollInterval = time.Hour }, []string{"poll_interval:", "1s to 1m"}},
		"emits too often":      {func(c *Config) { c.CollectionInterval = 0 }, []string{"collection_interval:", "1s to 5m"}},
		"emits too seldom":     {func(c *Config) { c.CollectionInterval = time.Hour }, []string{"collection_interval:", "1s to 5m"}},
		"no timeout":           {func(c *Config) { c.Timeout = 0 }, []string{"timeout:", "100ms to poll_interval (5s)"}},
		"timeout over a poll":  {func(c *Config) { c.Timeout = 6 * time.Second }, []string{"timeout:", "100ms to poll_interval (5s)"}},
		"small messages":       {func(c *Config) { c.MaxMessageSize = 0 }, []string{"max_message_size:", "65536"}},
		"large messages":       {func(c *Config) { c.MaxMessageSize = 1 << 30 }, []string{"max_message_size:", "268435456"}},
		"no containers":        {func(c *Config) { c.MaxContainers = 0 }, []string{"max_containers:", "1 or more"}},
		"no devices":           {func(c *Config) { c.MaxDevices = -1 }, []string{"max_devices:", "1 or more"}},
		"no resources":         {func(c *Config) { c.ResourceNames = nil }, []string{"resource_names:", "nvidia.com/gpu"}},
		"no name of resource":  {func(c *Config) { c.ResourceNames = []string{"nvidia.com/gpu", "gpu"} }, []string{"resource_names::1:", "domain/name"}},
		"two wrong resources":  {func(c *Config) { c.ResourceNames = []string{"a", "b"} }, []string{"resource_names::0:", "resource_names::1:"}},
		"unknown auth_type":    {func(c *Config) { c.AuthType = "tls" }, []string{"auth_type:", "serviceAccount, kubeConfig or none"}},
		"context of nothing":   {func(c *Config) { c.Context = "staging" }, []string{"context:", "kubeConfig"}},
		"no drivers":           {func(c *Config) { c.DRA.Drivers = nil }, []string{"dra::drivers:", "gpu.nvidia.com", "dra::enabled"}},
		"no driver's name":     {func(c *Config) { c.DRA.Drivers = []string{"gpu.nvidia.com", "nvidia.com/gpu"} }, []string{"dra::drivers::1:", "spec.driver"}},
		"no label":             {func(c *Config) { c.NodeLabels = []string{"team", "a/b/c"} }, []string{"node_labels::1:", "example.com/pool"}},
		"label again":          {func(c *Config) { c.NodeLabels = []string{"team", "team"} }, []string{"node_labels::1:", "remove"}},
		"too many labels":      {func(c *Config) { c.NodeLabels = strings.Split("abcdefghijklmnopq", "") }, []string{"node_labels, node_info::labels: are 17", "at most 16"}},
		"no label of capacity": {func(c *Config) { c.NodeInfo.CapacityTypeLabel = "a b" }, []string{"node_info::capacity_type_label:", "example.com/pool"}},
		"no label of a pool":   {func(c *Config) { c.NodeInfo.NodePoolLabel = "/" }, []string{"node_info::node_pool_label:", "example.com/pool"}},
		"capacity of its own":  {func(c *Config) { c.NodeInfo.CapacityType = "cheap" }, []string{"node_info::capacity_type:", "on_demand, spot or reserved"}},
		"long host type":       {func(c *Config) { c.NodeInfo.HostType = strings.Repeat("x", 257) }, []string{"node_info::host_type:", "256"}},
		"region of two lines":  {func(c *Config) { c.NodeInfo.Region = "a\nb" }, []string{"node_info::region:", "printable"}},
		"given without a key":  {func(c *Config) { c.NodeInfo.Labels = map[string]string{"": "x"} }, []string{"node_info::labels:", "example.com/pool"}},
		"given without value":  {func(c *Config) { c.NodeInfo.Labels = map[string]string{"team": ""} }, []string{"node_info::labels::team:", "price rules"}},
		"no scheduler":         {func(c *Config) { c.Sharing = []string{"hami", "slurm"} }, []string{"sharing::1:", "hami, volcano, koordinator, kai"}},
		"scheduler again":      {func(c *Config) { c.Sharing = []string{"kai", "kai"} }, []string{"sharing::1:", "remove"}},
		"sharing without API":  {func(c *Config) { c.Sharing, c.AuthType = []string{"kai"}, k8sclient.None }, []string{"sharing:", "auth_type"}},
		"no reservations":      {func(c *Config) { c.Sharing, c.ReservationNamespaces = []string{"kai"}, nil }, []string{"reservation_namespaces:", "defaults"}},
		"no namespace":         {func(c *Config) { c.ReservationNamespaces = []string{"a/b"} }, []string{"reservation_namespaces::0:"}},
		"everything at a time": {func(c *Config) { *c = Config{} }, []string{"socket:", "node_name:", "poll_interval:", "timeout:", "resource_names:"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.NodeName = "node-a"
			require.NoError(t, cfg.Validate())
			tt.change(cfg)
			err := validate(cfg)
			require.Error(t, err)
			for _, w := range tt.want {
				assert.Contains(t, err.Error(), w)
			}
		})
	}
}
