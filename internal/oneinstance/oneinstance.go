// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package oneinstance is for components that must see all of the data: one that is named in two
// pipelines must not start.
package oneinstance // import "github.com/otelcol-gpu/otelcol-gpu/internal/oneinstance"

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// running holds the configurations that have a running component.
//
// A component that is named in two pipelines is created twice, with the same
// configuration: each instance would see a part of the data and write the same
// series. The Collector hands the very same *Config to both, and another one after
// a reload or to another Collector in the process, so the pointer distinguishes
// these; the ID alone would not. The claim is made at start and not at
// creation, because a Collector that fails to build its pipelines shuts nothing
// down that it has created, while it does shut down what it has started.
var running sync.Map // Instance -> struct{}

// Instance is a component by its configuration, a pointer, and its ID.
type Instance struct {
	Config component.Config
	ID     component.ID
}

// Claim fails where another instance of the same component runs. What is the points that it has to
// see all of.
func (i Instance) Claim(what string) error {
	if _, taken := running.LoadOrStore(i, struct{}{}); taken {
		return fmt.Errorf("%s is named in more than one pipeline: one instance has to see all points of %s; "+
			"name it in one metrics pipeline only, and join pipelines with the forward connector before it", i.ID, what)
	}
	return nil
}

// Release ends a claim that succeeded.
func (i Instance) Release() { running.Delete(i) }
