// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const usualSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// Allocation is what is read of the configuration of gpu_allocation.
type Allocation struct {
	Socket   string `mapstructure:"socket"`
	NodeName string `mapstructure:"node_name"`
	Optional bool   `mapstructure:"optional"`
}

// ReadAllocation reads the configuration of a gpu_allocation receiver.
func ReadAllocation(c Component) (Allocation, error) {
	cfg := Allocation{Socket: usualSocket}
	err := c.Read(&cfg)
	return cfg, err
}

// Allocations are the receivers that ask a kubelet: not those that do without, because
// there is none on this machine.
func (c *Configuration) Allocations() []Component {
	return slices.DeleteFunc(c.Of("receivers", "gpu_allocation"), func(c Component) bool {
		cfg, err := ReadAllocation(c)
		if err != nil || !cfg.Optional {
			return false
		}
		_, err = os.Stat(cfg.Socket)
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	})
}

// ExporterReceivers are the types of the receivers that scrape a vendor's exporter.
var ExporterReceivers = []string{"dcgm", "amd_gpu", "gaudi", "intel_gpu"}

// Exporters is what is read of the configuration of a receiver that scrapes exporters.
type Exporters struct {
	Component
	// Type is one of ExporterReceivers.
	Type      string
	Endpoints []string
	// Kubernetes is nil where exporters are not discovered.
	Kubernetes *Discovery
	// Source is sysfs where the receiver reads the driver's files instead.
	Source string
}

// Discovery is how a receiver finds its node's exporter.
type Discovery struct {
	NodeName      string   `mapstructure:"node_name"`
	Namespaces    []string `mapstructure:"namespaces"`
	LabelSelector string   `mapstructure:"label_selector"`
	Port          int      `mapstructure:"port"`
}

// Exporters returns the receivers of exporters that can be read, by their ids.
func (c *Configuration) Exporters() []Exporters {
	var all []Exporters
	for _, component := range c.Of("receivers", ExporterReceivers...) {
		var cfg struct {
			Endpoints  []string   `mapstructure:"endpoints"`
			Kubernetes *Discovery `mapstructure:"kubernetes"`
			Source     string     `mapstructure:"source"`
		}
		if component.Read(&cfg) == nil {
			name, _, _ := strings.Cut(component.ID, "/")
			all = append(all, Exporters{component, name, cfg.Endpoints, cfg.Kubernetes, cfg.Source})
		}
	}
	return all
}

// NodeName is the node that the configuration, else the environment names.
func (c *Configuration) NodeName() string {
	for _, component := range c.Allocations() {
		if cfg, err := ReadAllocation(component); err == nil && cfg.NodeName != "" {
			return cfg.NodeName
		}
	}
	for _, d := range c.Exporters() {
		if d.Kubernetes != nil && d.Kubernetes.NodeName != "" {
			return d.Kubernetes.NodeName
		}
	}
	for _, component := range c.Of("receivers", "nvml") {
		if cfg := (Discovery{}); component.Read(&cfg) == nil && cfg.NodeName != "" {
			return cfg.NodeName
		}
	}
	return os.Getenv("K8S_NODE_NAME")
}

// OwnAddress is where the collector serves its own metrics.
func (c *Configuration) OwnAddress() string {
	readers, _ := c.conf.Get("service::telemetry::metrics::readers").([]any)
	for _, reader := range readers {
		prometheus := MapOf(MapOf(MapOf(MapOf(reader)["pull"])["exporter"])["prometheus"])
		if prometheus == nil {
			continue
		}
		host, _ := prometheus["host"].(string)
		port, err := strconv.Atoi(fmt.Sprint(prometheus["port"]))
		if err == nil {
			return Near(net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	if readers == nil { // what the collector does without any
		return "localhost:8888"
	}
	return ""
}

// The parts of an installation.
const (
	RoleAgent      = "agent"
	RoleGateway    = "gateway"
	RoleStandalone = "standalone"
)

// Role is which part of an installation the configuration describes.
func (c *Configuration) Role() string {
	summary := len(c.Of("processors", "gpu_summary")) > 0
	devices := len(c.Of("receivers", append([]string{"gpu_allocation", "nvml"}, ExporterReceivers...)...)) > 0
	switch {
	case summary && devices:
		return RoleStandalone
	case summary:
		return RoleGateway
	case devices:
		return RoleAgent
	default:
		return "another collector"
	}
}

// Empty is whether the service has no pipelines.
func (c *Configuration) Empty() bool { return len(c.used) == 0 }
