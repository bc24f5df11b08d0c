// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package format // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/format"

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/event"
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
// everything else that it states, in the order of the names.
func facts(e *event.Event) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, text})
		}
	}
	add("Service", e.Text(names.ServiceName))
	add("Namespace", e.Text(names.K8sNamespaceName))
	add("Node", e.Node())
	add("Device", e.Text(names.HwID))
	add("Cluster", e.Text(names.K8sClusterName))
	add("XID", xid(e))
	add("Meaning", e.Text(names.GPUXIDMeaning))
	add("Action", e.Text(names.GPUXIDAction))
	add("Missing pods", missingPods(e))
	for _, name := range slices.Sorted(maps.Keys(e.Attributes)) {
		switch name {
		case names.ServiceName, names.K8sNamespaceName, names.K8sNodeName, names.HostName, names.HwID, names.K8sClusterName,
			names.GPUXIDCode, names.GPUXIDMnemonic, names.GPUXIDMeaning, names.GPUXIDAction, names.GPUXIDFatal,
			names.GPUXIDBucket, names.GPUHealthAction, // for programs: Action has it in words
			names.GPUServiceMissingPods, names.GPUServiceMissingPodCount, names.GPUServiceSettledPodCount:
		default:
			add(event.TypeName(name), e.Text(name))
		}
	}
	return out
}

// xid is the code with what the catalogue calls it.
func xid(e *event.Event) string {
	out := strings.TrimSpace(e.Text(names.GPUXIDCode) + " " + e.Text(names.GPUXIDMnemonic))
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

// missingPods is how many are missing, of how many, with the names of the first.
func missingPods(e *event.Event) string {
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
