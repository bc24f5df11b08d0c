// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// stateVersion is of the form below. Another one is not read.
const stateVersion = 1

// savedState is what is stored: every condition whose raising was told.
type savedState struct {
	Version int          `json:"version"`
	Raised  []savedEvent `json:"raised"`
}

type savedEvent struct {
	Event     string `json:"event"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service"`
}

// encodeState writes services in order, so that the same state is the same text.
func encodeState(raised map[service]struct{}) ([]byte, error) {
	s := savedState{Version: stateVersion, Raised: make([]savedEvent, 0, len(raised))}
	for v := range raised {
		s.Raised = append(s.Raised, savedEvent{names.ServicePartial.Name, v.cluster, v.namespace, v.name})
	}
	slices.SortFunc(s.Raised, func(a, b savedEvent) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Service, b.Service))
	})
	return json.Marshal(s)
}

// decodeState reads what encodeState wrote; nothing at all is no state. Of more
// than limit conditions the first are taken, and the number of the others is
// returned. Events that this version does not know are left out.
func decodeState(text []byte, limit int) (raised map[service]struct{}, refused int, err error) {
	raised = map[service]struct{}{}
	if len(text) == 0 {
		return raised, 0, nil
	}
	var s savedState
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, 0, err
	}
	if s.Version != stateVersion {
		return nil, 0, fmt.Errorf("version %d is not known, only %d is", s.Version, stateVersion)
	}
	for _, e := range s.Raised {
		if e.Event != names.ServicePartial.Name {
			continue
		}
		v := service{cluster: bounded(e.Cluster), namespace: bounded(e.Namespace), name: bounded(e.Service)}
		if v.name == "" {
			return nil, 0, errors.New("a service has no name")
		}
		if _, twice := raised[v]; !twice && len(raised) == limit {
			refused++
			continue
		}
		raised[v] = struct{}{}
	}
	return raised, refused, nil
}
