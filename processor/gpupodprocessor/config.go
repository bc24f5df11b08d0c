// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupodprocessor

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
	"github.com/otelcol-gpu/otelcol-gpu/processor/gpupodprocessor/internal/identity"
)

// ExporterLabels is the use of the exporter's labels.
type ExporterLabels string

// ServiceName is the origin of service.name.
type ServiceName string

// SlurmIndexOrder is how Slurm counts the devices of a node.
type SlurmIndexOrder string

const (
	// ExporterLabelsFallback uses the exporter's labels where gpu.allocation has no
	// owner of a device.
	ExporterLabelsFallback ExporterLabels = "fallback"
	// ExporterLabelsIgnore takes the labels of owners off and ignores them: such a
	// device has no owner unless its resource has one already.
	ExporterLabelsIgnore ExporterLabels = "ignore"

	// ServiceNameExporterLabels computes service.name from the pod labels that
	// the exporter prints, else takes the pod's name.
	ServiceNameExporterLabels ServiceName = "exporter_labels"
	// ServiceNameNone leaves service.name to another component: k8s_attributes.
	ServiceNameNone ServiceName = "none"

	// SlurmIndexPCI is the order of PCI addresses: AutoDetect=nvml in gres.conf.
	SlurmIndexPCI SlurmIndexOrder = "pci"
	// SlurmIndexMinor is the number in File=/dev/nvidia<N> in gres.conf.
	SlurmIndexMinor SlurmIndexOrder = "minor"
)

const (
	defaultMaxSeries  = 100_000
	defaultMaxDevices = 100_000
	defaultMaxAge     = 45 * time.Second

	// Younger than the shortest collection_interval nothing can be, and what is
	// silent for longer is forgotten anyway.
	maxClusterName = 256 // characters

	minMaxAge, maxMaxAge = 3 * time.Second, 10 * time.Minute
)

// Config of the gpu_pod processor.
type Config struct {
	// ExporterLabels is fallback (default) or ignore.
	ExporterLabels ExporterLabels `mapstructure:"exporter_labels"`
	// ServiceName is exporter_labels (default) or none. It must be none where
	// k8s_attributes follows, which never overwrites a service.name.
	ServiceName ServiceName `mapstructure:"service_name"`
	// PodDevices writes the devices of a pod on each resource of logs and traces that
	// names the pod and no device.
	PodDevices bool `mapstructure:"pod_devices"`
	// OnlyEndSeries is for a gpu_pod behind the component that sets service.name, and
	// behind a gpu_pod that attributes: it attributes nothing, and ends the series of
	// a device that goes on under another service.name.
	OnlyEndSeries bool `mapstructure:"only_end_series"`
	// MaxSeries is how many series are tracked, so that they can be ended when
	// their device changes hands. Beyond it they age instead; no data is lost.
	MaxSeries int `mapstructure:"max_series"`
	// MaxAge is how old a node's gpu.allocation may be, and at least three of its
	// intervals. Beyond it the owner is unknown.
	MaxAge time.Duration `mapstructure:"max_age"`
	// MaxDevices is how many devices are remembered, of gpu.allocation and of
	// telemetry each. What goes beyond has the owner that the exporter names.
	MaxDevices int `mapstructure:"max_devices"`
	// SlurmIndexOrder is pci or minor: how Slurm counts the devices of which
	// slurm_allocation knows the index alone. Empty: they are joined to no device by it.
	SlurmIndexOrder SlurmIndexOrder `mapstructure:"slurm_index_order"`
	// SlurmClusterName is the cluster of the jobs that the exporter's labels name: with it
	// such a job owns a device that gpu.allocation does not cover.
	SlurmClusterName string `mapstructure:"slurm_cluster_name"`
}

var _ component.Config = (*Config)(nil)

func createDefaultConfig() component.Config {
	return &Config{
		ExporterLabels: ExporterLabelsFallback,
		ServiceName:    ServiceNameExporterLabels,
		MaxSeries:      defaultMaxSeries,
		MaxAge:         defaultMaxAge,
		MaxDevices:     defaultMaxDevices,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every key that cannot be used, with its remedy.
func (c *Config) Validate() error {
	var errs []error
	switch c.ExporterLabels {
	case ExporterLabelsFallback, ExporterLabelsIgnore:
	default:
		errs = append(errs, fmt.Errorf("exporter_labels: %q is neither fallback nor ignore", c.ExporterLabels))
	}
	switch c.ServiceName {
	case ServiceNameExporterLabels, ServiceNameNone:
	default:
		errs = append(errs, fmt.Errorf("service_name: %q is neither exporter_labels nor none", c.ServiceName))
	}
	if c.PodDevices && c.OnlyEndSeries {
		errs = append(errs, errors.New("pod_devices: with only_end_series no devices of pods are known: set it in the gpu_pod that attributes"))
	}
	switch c.SlurmIndexOrder {
	case "", SlurmIndexPCI, SlurmIndexMinor:
	default:
		errs = append(errs, fmt.Errorf("slurm_index_order: %q is neither pci nor minor: leave it out where the order is not known", c.SlurmIndexOrder))
	}
	switch {
	case safetext.Strip(c.SlurmClusterName, maxClusterName) != c.SlurmClusterName:
		errs = append(errs, fmt.Errorf("slurm_cluster_name: %q: set it to ClusterName of slurm.conf, at most %d characters", c.SlurmClusterName, maxClusterName))
	case c.SlurmClusterName != "" && c.ExporterLabels == ExporterLabelsIgnore:
		errs = append(errs, fmt.Errorf("slurm_cluster_name: %q: with exporter_labels ignore the labels name no job: remove one of the two", c.SlurmClusterName))
	}
	if c.OnlyEndSeries && (c.SlurmClusterName != "" || c.SlurmIndexOrder != "") {
		errs = append(errs, errors.New("slurm_cluster_name, slurm_index_order: with only_end_series nothing is attributed: set them in the gpu_pod that does"))
	}
	if c.MaxSeries <= 0 {
		errs = append(errs, fmt.Errorf("max_series: %d: set it to 1 or more; %d serves 160 nodes of 8 GPUs",
			c.MaxSeries, defaultMaxSeries))
	}
	if c.MaxAge < minMaxAge || c.MaxAge > maxMaxAge {
		errs = append(errs, fmt.Errorf("max_age: %s: set it to three of gpu_allocation's intervals, between %s and %s; %s is right for its default",
			c.MaxAge, minMaxAge, maxMaxAge, defaultMaxAge))
	}
	if c.MaxDevices <= 0 {
		errs = append(errs, fmt.Errorf("max_devices: %d: set it to 1 or more; the default is %d", c.MaxDevices, defaultMaxDevices))
	}
	return errors.Join(errs...)
}

// policy is what to do with the exporter's labels.
func (c *Config) policy() identity.Policy {
	return identity.Policy{
		IgnoreLabels:      c.ExporterLabels == ExporterLabelsIgnore,
		ServiceFromLabels: c.ServiceName == ServiceNameExporterLabels,
		SlurmCluster:      c.SlurmClusterName,
	}
}
