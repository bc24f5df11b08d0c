// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/eventrecord"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// maxPodsNamed is how many missing pods are named where people read.
const maxPodsNamed = 10

// fact is one thing that people want to know about an event.
type fact struct {
	label string
	text  string
}

// facts returns what the event is about, the advice that it gives, and then
// everything else that it says, in the order of the names.
func facts(e *event) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, text})
		}
	}
	add("Service", e.text(names.ServiceName))
	add("Namespace", e.text(names.K8sNamespaceName))
	add("Node", e.node())
	add("Device", e.text(names.HwID))
	add("Cluster", e.text(names.K8sClusterName))
	add("XID", xid(e))
	add("Meaning", e.text(names.GPUXIDMeaning))
	add("Action", e.text(names.GPUXIDAction))
	add("Missing pods", missingPods(e))
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		switch name {
		case names.ServiceName, names.K8sNamespaceName, names.K8sNodeName, names.HostName, names.HwID, names.K8sClusterName,
			names.GPUXIDCode, names.GPUXIDMnemonic, names.GPUXIDMeaning, names.GPUXIDAction, names.GPUXIDFatal,
			names.GPUServiceMissingPods, names.GPUServiceMissingPodCount, names.GPUServiceSettledPodCount:
		default:
			add(strings.Map(typeRune, name), e.text(name))
		}
	}
	return out
}

// text returns what the event's resource, else the event itself says under the
// name, as text; empty if neither says anything but blanks.
func (e *event) text(name string) string {
	for _, m := range []map[string]any{e.Resource, e.Attributes} {
		if v, ok := m[name]; ok {
			if s, err := plainText(v); err == nil && strings.TrimSpace(s) != "" {
				return s
			}
		}
	}
	return ""
}

func (e *event) node() string {
	if node := e.text(names.K8sNodeName); node != "" {
		return node
	}
	return e.text(names.HostName)
}

// place is what events are grouped by: their node, else their service; empty
// where they name neither.
func (e *event) place() string {
	if node := e.node(); node != "" {
		return "node " + e.text(names.K8sClusterName) + "/" + node
	}
	if service := e.text(names.ServiceName); service != "" {
		return "service " + e.text(names.K8sClusterName) + "/" + e.text(names.K8sNamespaceName) + "/" + service
	}
	return ""
}

// subject names what the event is about, the narrowest first; empty if it does
// not say.
func (e *event) subject() string {
	for _, s := range []string{e.text(names.HwID), e.text(names.ServiceName), e.node(), e.text(names.K8sClusterName)} {
		if s != "" {
			return s
		}
	}
	return ""
}

// title says in a few words what happened: severity, state and name. It holds
// no text from outside but the name, and of that only letters, digits, dots
// and underscores.
func (e *event) title() string {
	word := strings.ToUpper(eventrecord.SeverityName(e.Severity))
	if e.State == names.EventRaised || e.State == names.EventCleared {
		word += " " + e.State
	}
	return e.mark() + word + ": " + strings.Map(typeRune, e.Name)
}

// sentence is the event's message, else what it is about.
func (e *event) sentence() string {
	if strings.TrimSpace(e.Message) != "" {
		return e.Message
	}
	return e.subject()
}

// mark tells people that the event is a test or was sent before.
func (e *event) mark() string {
	switch e.Trigger {
	case audit.TriggerTest:
		return "[TEST] "
	case audit.TriggerReplay:
		return "[REPLAY] "
	}
	return ""
}

func (e *event) isTest() bool   { return e.Trigger == audit.TriggerTest }
func (e *event) isReplay() bool { return e.Trigger == audit.TriggerReplay }

// xid is the code with what the catalogue calls it.
func xid(e *event) string {
	out := strings.TrimSpace(e.text(names.GPUXIDCode) + " " + e.text(names.GPUXIDMnemonic))
	if out == "" {
		return ""
	}
	switch e.Attributes[names.GPUXIDFatal] {
	case true:
		out += ", fatal"
	case false:
		out += ", not fatal"
	}
	return out
}

// missingPods says how many are missing, of how many, and names the first.
func missingPods(e *event) string {
	list, _ := e.Attributes[names.GPUServiceMissingPods].([]any)
	count, counted := e.Attributes[names.GPUServiceMissingPodCount].(int64)
	if !counted {
		count = int64(len(list))
	}
	if count == 0 && len(list) == 0 {
		return ""
	}
	out := fmt.Sprint(count)
	if settled, ok := e.Attributes[names.GPUServiceSettledPodCount].(int64); ok {
		out += fmt.Sprintf(" of %d", settled)
	}
	var named []string
	for _, v := range list[:min(len(list), maxPodsNamed)] {
		if pod, ok := v.(string); ok {
			named = append(named, pod)
		}
	}
	if len(named) > 0 {
		out += ": " + strings.Join(named, ", ")
		if more := count - int64(len(named)); more > 0 {
			out += fmt.Sprintf(" and %d more", more)
		}
	}
	return out
}

// cut returns s with every rune written by escape (nil: as it is), at most
// limit long; a text that was cut ends in "…". Length is counted in UTF-16
// units: no service counts more than those for a character.
func cut(s string, limit int, escape func(rune) string) string {
	if limit < 1 {
		return ""
	}
	var b strings.Builder
	length, room := 0, 0 // room: how much of b leaves room for the ellipsis
	for _, r := range s {
		piece := string(r)
		if escape != nil {
			piece = escape(r)
		}
		length += units(piece)
		if length > limit {
			return b.String()[:room] + "…"
		}
		b.WriteString(piece)
		if length < limit {
			room = b.Len()
		}
	}
	return b.String()
}

// units is the length of s in UTF-16 units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
