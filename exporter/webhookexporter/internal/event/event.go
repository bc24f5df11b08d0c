// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package event holds events on their way to endpoints, and which of them an
// endpoint wants.
package event // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"

import (
	"cmp"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// Event is an event on its way to endpoints. The deliveries to all of them share
// it, and never change it.
type Event struct {
	eventrecord.Event
	Trigger audit.Trigger // what it is sent for, if not because it happened
}

// IsTest reports whether the event was made up to test an endpoint.
func (e *Event) IsTest() bool { return e.Trigger == audit.TriggerTest }

// IsReplay reports whether the event was sent before.
func (e *Event) IsReplay() bool { return e.Trigger == audit.TriggerReplay }

// Text returns the attribute of that name as text: the resource's, else the
// event's own; empty if both are missing or blank.
func (e *Event) Text(name string) string {
	for _, m := range []map[string]any{e.Resource, e.Attributes} {
		if v, ok := m[name]; ok {
			if s, err := PlainText(v); err == nil && strings.TrimSpace(s) != "" {
				return s
			}
		}
	}
	return ""
}

// Node returns the name of the node, else of the host; empty without either.
func (e *Event) Node() string {
	if node := e.Text(names.K8sNodeName); node != "" {
		return node
	}
	return e.Text(names.HostName)
}

// Cluster returns the cluster of Kubernetes, else that of Slurm; empty without either.
func (e *Event) Cluster() string {
	return cmp.Or(e.Text(names.K8sClusterName), e.Text(names.SlurmClusterName))
}

// Namespace returns that of Kubernetes, else that of the service, which is the account on Slurm;
// empty without either.
func (e *Event) Namespace() string { return cmp.Or(e.Text(names.K8sNamespaceName), e.slurmNamespace()) }

func (e *Event) slurmNamespace() string {
	if e.Text(names.SlurmClusterName) == "" {
		return ""
	}
	return e.Text(names.ServiceNamespace)
}

// Place is what events are grouped by: their node, else their service; empty if
// they name neither.
func (e *Event) Place() string {
	if node := e.Node(); node != "" {
		return "node " + e.Text(names.K8sClusterName) + "/" + node
	}
	if service := e.Text(names.ServiceName); service != "" {
		return "service " + e.Cluster() + "/" + e.Namespace() + "/" + service
	}
	return ""
}

// Subject names what the event is about, as narrowly as it states it; empty if
// it does not.
func (e *Event) Subject() string {
	for _, s := range []string{e.Text(names.HwID), e.Text(names.ServiceName), e.Node(), e.Text(names.K8sClusterName)} {
		if s != "" {
			return s
		}
	}
	return ""
}

// Title is what happened in a few words: severity, state and name. It holds
// no text from outside but the name, and of that only letters, digits, dots
// and underscores.
func (e *Event) Title() string {
	word := strings.ToUpper(eventrecord.SeverityName(e.Severity))
	if e.State == names.EventRaised || e.State == names.EventCleared {
		word += " " + e.State
	}
	return e.Mark() + word + ": " + TypeName(e.Name)
}

// Sentence is the event's message, else what it is about.
func (e *Event) Sentence() string {
	if strings.TrimSpace(e.Message) != "" {
		return e.Message
	}
	return e.Subject()
}

// Mark is what texts for people begin with if the event is a test or a replay.
func (e *Event) Mark() string {
	switch e.Trigger {
	case audit.TriggerTest:
		return "[TEST] "
	case audit.TriggerReplay:
		return "[REPLAY] "
	}
	return ""
}
