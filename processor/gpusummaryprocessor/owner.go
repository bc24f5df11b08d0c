// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusummaryprocessor

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// owners holds the configurations that have a running processor.
//
// A component that is named in two pipelines is created twice, with the same
// configuration: each instance would see a part of the pods and write the same
// series. The Collector hands the very same *Config to both, and another one after
// a reload or to another Collector in the process, so the pointer distinguishes
// these; the ID alone would not. The claim is made at start and not at
// creation, because a Collector that fails to build its pipelines shuts nothing
// down that it has created, while it does shut down what it has started.
var owners sync.Map // owner -> struct{}

type owner struct {
	cfg *Config
	id  component.ID
}

func (o owner) claim() error {
	if _, taken := owners.LoadOrStore(o, struct{}{}); taken {
		return fmt.Errorf("%s is named in more than one pipeline: one instance has to see all points of a service; "+
			"name it in one metrics pipeline only, and join pipelines with the forward connector before it", o.id)
	}
	return nil
}

func (o owner) release() { owners.Delete(o) }
