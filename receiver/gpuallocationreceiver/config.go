// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/gpuallocationreceiver/internal/snapshot"
)

const (
	minInterval           = time.Second
	maxPollInterval       = time.Minute
	maxCollectionInterval = 5 * time.Minute
	minTimeout            = 100 * time.Millisecond
	minMessageSize        = 64 << 10
	maxMessageSize        = 256 << 20
	maxSocketPath         = 107 // bytes that fit into Linux' sockaddr_un
)

// Config of the gpu_allocation receiver. NodeName or Optional is required.
type Config struct {
	// Config is how the receiver connects to the Kubernetes API. It is validated by
	// itself.
	k8sclient.Config `mapstructure:",squash"`

	// NodeLabels are labels of the node that gpu.node.info has as node.label.<key>.
	NodeLabels []string `mapstructure:"node_labels"`

	// NodeInfo is what else decides about gpu.node.info.
	NodeInfo NodeInfoConfig `mapstructure:"node_info"`

	// Sharing are the schedulers that share boards among pods, and write that on the pods:
	// sharing.Names. It needs the Kubernetes API.
	Sharing []string `mapstructure:"sharing"`

	// ReservationNamespaces are those of pods that hold boards for others, with kai.
	ReservationNamespaces []string `mapstructure:"reservation_namespaces"`

	// DRA is what is held through ResourceClaims. It needs the Kubernetes API.
	DRA DRAConfig `mapstructure:"dra"`

	// Socket is the path of the kubelet's pod-resources socket.
	Socket string `mapstructure:"socket"`

	// SysfsRoot is where the host's sysfs is mounted. It is read on nodes with devices of AMD
	// and Intel.
	SysfsRoot string `mapstructure:"sysfs_root"`

	// Optional is for a collector that runs on machines with and without a kubelet,
	// and not in a pod: that the socket is absent is no fault until it was there once,
	// and without NodeName the node has the machine's name.
	Optional bool `mapstructure:"optional"`

	// NodeName becomes k8s.node.name, and is part of the hw.id of devices
	// if their own is not known.
	NodeName string `mapstructure:"node_name"`

	// PodNamespace and PodName are the pod that the collector runs in. An answer of
	// the kubelet without it is that of one which does not know its pods yet.
	PodNamespace string `mapstructure:"pod_namespace"`
	PodName      string `mapstructure:"pod_name"`

	// ClusterName becomes k8s.cluster.name where it is set.
	ClusterName string `mapstructure:"cluster_name"`

	// PollInterval is the time between two questions to the kubelet, 1s to 1m.
	PollInterval time.Duration `mapstructure:"poll_interval"`

	// CollectionInterval is the time between two emissions without a change, 1s
	// to 5m.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// Timeout bounds each call, 100ms to PollInterval.
	Timeout time.Duration `mapstructure:"timeout"`

	// ResourceNames are the extended resources that are accelerators: names, or
	// their beginning followed by "*".
	ResourceNames []string `mapstructure:"resource_names"`

	// MaxMessageSize is the largest answer of the kubelet, in bytes.
	MaxMessageSize int `mapstructure:"max_message_size"`

	// MaxContainers and MaxDevices bound what one answer may hold: containers
	// with devices, and devices.
	MaxContainers int `mapstructure:"max_containers"`
	MaxDevices    int `mapstructure:"max_devices"`
}

// DRAConfig is about dynamic resource allocation.
type DRAConfig struct {
	// Enabled is whether ResourceSlices and ResourceClaims are read.
	Enabled bool `mapstructure:"enabled"`

	// Drivers are the drivers of GPUs.
	Drivers []string `mapstructure:"drivers"`
}

func (c *DRAConfig) drivers() map[string]bool {
	drivers := make(map[string]bool, len(c.Drivers))
	for _, d := range c.Drivers {
		drivers[d] = true
	}
	return drivers
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.DRA.Enabled && len(c.DRA.Drivers) == 0 {
		refuse("dra::drivers: is empty: name a driver such as gpu.nvidia.com, leave the key out for the defaults, or set dra::enabled to false")
	}
	for i, d := range c.DRA.Drivers {
		if problems := validation.IsDNS1123Subdomain(d); len(problems) > 0 {
			refuse("dra::drivers::%d: %q is no driver's name: write it as ResourceSlices have it in spec.driver, such as gpu.nvidia.com", i, d)
		}
	}
	switch {
	case c.Socket == "":
		refuse("socket: is empty: use the kubelet's, %s", defaultSocket)
	case !filepath.IsAbs(c.Socket):
		refuse("socket: %q is no absolute path: write the path without a scheme, such as %s", c.Socket, defaultSocket)
	case len(c.Socket) > maxSocketPath:
		refuse("socket: is %d bytes long: a socket's path has at most %d, mount it at a shorter one", len(c.Socket), maxSocketPath)
	}
	if !filepath.IsAbs(c.SysfsRoot) {
		refuse("sysfs_root: %q is no absolute path: write the folder where the host's sysfs is mounted, such as %s", c.SysfsRoot, defaultSysfs)
	}
	switch {
	case c.NodeName == "" && c.Optional:
	case c.NodeName == "":
		refuse("node_name: is empty: set it to ${env:K8S_NODE_NAME} and that variable, in the pod, from fieldRef spec.nodeName; outside of a pod, optional: true takes the machine's name")
	case strings.ContainsAny(c.NodeName, "/ \t\r\n"):
		refuse("node_name: %q is no name of a node: use ${env:K8S_NODE_NAME}", c.NodeName)
	}
	if (c.PodNamespace == "") != (c.PodName == "") {
		refuse("pod_namespace, pod_name: are %q and %q: set both, to ${env:K8S_POD_NAMESPACE} and ${env:K8S_POD_NAME} from fieldRef metadata.namespace and metadata.name, or, outside of a pod, neither", c.PodNamespace, c.PodName)
	}
	if c.PollInterval < minInterval || c.PollInterval > maxPollInterval {
		refuse("poll_interval: is %v: use %v to %v", c.PollInterval, minInterval, maxPollInterval)
	}
	if c.CollectionInterval < minInterval || c.CollectionInterval > maxCollectionInterval {
		refuse("collection_interval: is %v: use %v to %v", c.CollectionInterval, minInterval, maxCollectionInterval)
	}
	if c.Timeout < minTimeout || c.Timeout > max(c.PollInterval, minTimeout) {
		refuse("timeout: is %v: use %v to poll_interval (%v)", c.Timeout, minTimeout, c.PollInterval)
	}
	if c.MaxMessageSize < minMessageSize || c.MaxMessageSize > maxMessageSize {
		refuse("max_message_size: is %d: use %d to %d bytes", c.MaxMessageSize, minMessageSize, maxMessageSize)
	}
	if c.MaxContainers < 1 {
		refuse("max_containers: is %d: use 1 or more", c.MaxContainers)
	}
	if c.MaxDevices < 1 {
		refuse("max_devices: is %d: use 1 or more", c.MaxDevices)
	}
	if len(c.ResourceNames) == 0 {
		refuse("resource_names: is empty: name a resource such as nvidia.com/gpu, or leave the key out for the defaults")
	}
	if _, err := resourcenames.New(c.ResourceNames); err != nil {
		for _, one := range strings.Split(err.Error(), "\n") {
			refuse("resource_names::%s", one)
		}
	}
	c.validateNodeInfo(refuse)
	c.validateSharing(refuse)
	return errors.Join(errs...)
}

func (c *Config) builder(resources *resourcenames.Matcher) snapshot.Builder {
	return snapshot.Builder{
		Node: c.NodeName, MaxContainers: c.MaxContainers, MaxDevices: c.MaxDevices,
		Read: snapshot.Reader{Resources: resources, Drivers: c.DRA.drivers()},
	}
}
