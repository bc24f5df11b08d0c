// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuallocationreceiver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/resourcenames"
	"github.com/otelcol-gpu/otelcol-gpu/internal/sharing"
)

func (c *Config) validateSharing(refuse func(format string, args ...any)) {
	for i, name := range c.Sharing {
		switch {
		case sharing.Named(name) == nil:
			refuse("sharing::%d: %q is no scheduler: use %s", i, name, strings.Join(sharing.Names(), ", "))
		case slices.Contains(c.Sharing[:i], name):
			refuse("sharing::%d: %q is in the list already: remove one of them", i, name)
		}
	}
	if len(c.Sharing) > 0 && c.AuthType == k8sclient.None {
		refuse("sharing: reads annotations of pods, and auth_type is none: set auth_type, or leave sharing out")
	}
	for i, namespace := range c.ReservationNamespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			refuse("reservation_namespaces::%d: %q is no name of a namespace", i, namespace)
		}
	}
	if slices.Contains(c.Sharing, names.SharingKAI) && len(c.ReservationNamespaces) == 0 {
		refuse("reservation_namespaces: is empty: name the namespace in which KAI runs its reservation pods, or leave the key out for the defaults")
	}
}

// sharingReader is nil where no scheduler shares boards.
func (c *Config) sharingReader() *sharing.Reader {
	if len(c.Sharing) == 0 {
		return nil
	}
	return &sharing.Reader{Schedulers: c.schedulers(), Reservations: c.ReservationNamespaces}
}

func (c *Config) schedulers() []*sharing.Scheduler {
	all := make([]*sharing.Scheduler, len(c.Sharing))
	for i, name := range c.Sharing {
		all[i] = sharing.Named(name)
	}
	return all
}

// resources are the extended resources that are accelerators, with those of schedulers that
// have a device plugin.
func (c *Config) resources() (*resourcenames.Matcher, error) {
	all := slices.Clone(c.ResourceNames)
	for _, s := range c.schedulers() {
		if s.Parts && !slices.Contains(all, s.Resource) {
			all = append(all, s.Resource)
		}
	}
	return resourcenames.New(all)
}
