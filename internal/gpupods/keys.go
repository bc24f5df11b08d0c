// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpupods

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
)

// Keys are those of a component that says which pods ask for accelerators. They are meant
// to be squashed into its own.
type Keys struct {
	// Namespaces are those in which pods are read; all if empty.
	Namespaces []string `mapstructure:"namespaces"`

	// ResourceNames are the extended resources that are accelerators: names, or
	// their beginning followed by "*".
	ResourceNames []string `mapstructure:"resource_names"`

	// DRA is about what is asked for through ResourceClaims.
	DRA DRA `mapstructure:"dra"`
}

// DRA is about dynamic resource allocation.
type DRA struct {
	// Enabled is whether ResourceClaims are read.
	Enabled bool `mapstructure:"enabled"`

	// Drivers are those of GPUs.
	Drivers []string `mapstructure:"drivers"`

	// DeviceClasses are those of GPUs, for claims that were not
	// allocated yet.
	DeviceClasses []string `mapstructure:"device_classes"`
}

// DefaultKeys returns the defaults. The slices are the caller's own.
func DefaultKeys() Keys {
	return Keys{
		ResourceNames: resourcenames.Default(),
		DRA: DRA{
			Enabled:       true,
			Drivers:       []string{"gpu.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
			DeviceClasses: []string{"gpu.nvidia.com", "mig.nvidia.com", "gpu.amd.com", "gpu.intel.com", "gaudi.intel.com"},
		},
	}
}

// Check reports every key that cannot work to bad, as a format with arguments that names
// the key, its value and the remedy.
func (k *Keys) Check(bad func(format string, args ...any)) {
	for i, ns := range k.Namespaces {
		if len(validation.IsDNS1123Label(ns)) > 0 {
			bad("namespaces::%d: %q is no name of a namespace; leave the key out for all", i, ns)
		} else if slices.Contains(k.Namespaces[:i], ns) {
			bad("namespaces::%d: %q is named twice: remove one", i, ns)
		}
	}
	if len(k.ResourceNames) == 0 {
		bad("resource_names is empty: name a resource such as nvidia.com/gpu, or leave the key out for the defaults")
	}
	if _, err := resourcenames.New(k.ResourceNames); err != nil {
		for _, one := range strings.Split(err.Error(), "\n") {
			bad("resource_names::%s", one)
		}
	}
	if !k.DRA.Enabled {
		return
	}
	if len(k.DRA.Drivers) == 0 {
		bad("dra::drivers is empty: name a driver such as gpu.nvidia.com, leave the key out for the defaults, or set dra::enabled to false")
	}
	for key, names := range map[string][]string{"drivers": k.DRA.Drivers, "device_classes": k.DRA.DeviceClasses} {
		for i, n := range names {
			if len(validation.IsDNS1123Subdomain(n)) > 0 {
				bad("dra::%s::%d: %q is no name of one: write it as the cluster has it, such as gpu.nvidia.com", key, i, n)
			}
		}
	}
}
