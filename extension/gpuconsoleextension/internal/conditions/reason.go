// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package conditions // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/conditions"

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store"
)

// entry is a reason and what it is about.
type entry struct {
	consoleapi.Reason
	device, node Place
	service      Service
	event        string // its name; empty where telemetry alone shows it
	// same is equal for what is about the same fault of the same subject.
	same string
	// also is equal likewise, for who knows less of the subject: of an exporter
	// its address, where telemetry knows its node.
	also string
}

func text(e *store.Event, key string) string {
	for _, attributes := range []map[string]any{e.Resource, e.Attributes} {
		if v, ok := attributes[key]; ok && v != nil {
			return fmt.Sprint(v)
		}
	}
	return ""
}

// texts returns the texts of an attribute that is a list.
func texts(e *store.Event, key string) (all []string) {
	for _, v := range list(e, key) {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}

func number(e *store.Event, key string) (float64, bool) {
	v, err := strconv.ParseFloat(text(e, key), 64)
	return v, err == nil
}

// severityOf is that of an event. After a notice below error the device goes on
// working, which is worth knowing.
func severityOf(of string, notice bool) consoleapi.Severity {
	switch {
	case of == "fatal" || of == "error":
		return consoleapi.SeverityError
	case of == "warn" && !notice:
		return consoleapi.SeverityWarn
	default:
		return consoleapi.SeverityInfo
	}
}

// kindOf is the kind of an event, and its label.
func kindOf(e *store.Event) (consoleapi.Attention, string) {
	switch e.Name {
	case names.EventXID:
		return consoleapi.XID, xidLabel(text(e, names.GPUXIDCode))
	case names.EventECCUncorrected:
		return consoleapi.ECCUncorrected, eccLabel
	case names.EventDeviceLost:
		return consoleapi.LostDevice, lostLabel
	case names.EventRowRemapFailure:
		return consoleapi.RowRemapFailure, remapLabel
	case names.EventThrottle:
		return consoleapi.Throttled, throttleLabel(texts(e, names.GPUThrottleReasons))
	case names.EventTemperature:
		if text(e, names.HwSensorLocation) == names.SensorMemory {
			return consoleapi.MemoryTemperature, "memory" + above(e, 1, "°C")
		}
		return consoleapi.Temperature, "hot" + above(e, 1, "°C")
	case names.EventMemoryPressure:
		return consoleapi.MemoryPressure, "memory full" + above(e, 100, "%")
	case names.EventExporterDown:
		switch text(e, names.GPUExporterReason) {
		case names.ExporterReasonFrozen:
			return consoleapi.FrozenExporter, frozenLabel
		case names.ExporterReasonUnrecognized:
			return consoleapi.UnrecognizedExporter, unrecognizedLabel
		}
		return consoleapi.DownExporter, downLabel
	case names.EventNodeLost:
		return consoleapi.LostNode, nodeLabel
	case names.EventHealth:
		return consoleapi.Unhealthy, "health"
	case names.EventServicePartial:
		return consoleapi.Partial, "partial"
	case names.EventServiceNoData:
		return consoleapi.NoData, "no data"
	case names.EventIdleHeld:
		return consoleapi.IdleDevices, "idle GPUs"
	case names.EventRAS:
		return consoleapi.OtherCondition, "AFID " + cmp.Or(text(e, names.GPURASCode), "of unknown code")
	default:
		return consoleapi.OtherCondition, inWords(e.Name)
	}
}

// inWords is what a condition without a kind of its own is called: row remap pending
// for gpu.row_remap.pending. A new rule needs no entry here.
func inWords(event string) string {
	return strings.NewReplacer(".", " ", "_", " ").Replace(strings.TrimPrefix(event, "gpu."))
}

const (
	eccLabel     = "ECC uncorrected"
	lostLabel    = "GPU lost"
	goneLabel    = "values missing"
	remapLabel   = "row remap failed"
	retiredLabel = "pages wait to be retired"
	downLabel    = "exporter down"
	frozenLabel  = "exporter frozen"
	nodeLabel    = "node lost"

	unrecognizedLabel = "exporter's fields not known"
)

func xidLabel(code string) string { return "XID " + cmp.Or(code, "of unknown code") }

func throttleLabel(reasons []string) string {
	if len(reasons) == 0 {
		return "throttled"
	}
	return "throttled: " + strings.ReplaceAll(strings.Join(reasons, ", "), "_", " ")
}

func above(e *store.Event, scale float64, unit string) string {
	threshold, ok := number(e, names.GPUEventThreshold)
	if !ok {
		return ""
	}
	return ", above " + strconv.FormatFloat(threshold*scale, 'f', -1, 64) + " " + unit
}

// ofEvent is the entry of an event.
func ofEvent(e *store.Event, notice bool) *entry {
	kind, label := kindOf(e)
	since, id := e.Time.UTC(), e.ID
	out := &entry{event: e.Name, Reason: consoleapi.Reason{
		Kind: kind, Severity: severityOf(e.Severity, notice), Label: label, Text: cmp.Or(e.Message, label), Notice: notice, EventID: &id, Since: &since,
	}}
	cluster, node := text(e, names.K8sClusterName), cmp.Or(text(e, names.K8sNodeName), text(e, names.HostName))
	namespace, slurm := text(e, names.K8sNamespaceName), ""
	if namespace == "" { // on Slurm it is in an account
		if slurm = text(e, names.SlurmClusterName); slurm != "" {
			namespace = text(e, names.ServiceNamespace)
		}
	}
	if e.Name == names.EventExporterDown {
		out.node = Place{cluster, node}
		out.same = sameExporter(cluster, node, text(e, names.ServerAddress), text(e, names.ServerPort))
	} else if device, _ := e.Resource[names.HwID].(string); device != "" {
		out.device, out.node = Place{cluster, device}, Place{cluster, node}
		out.same = sameDevice(kind, out.device, text(e, names.GPUXIDCode))
	} else if service := text(e, names.ServiceName); service != "" && node == "" {
		out.service = Service{cluster, slurm, namespace, service}
		out.same = sameService(kind, out.service)
	} else if node != "" {
		out.node = Place{cluster, node}
		out.same = sameNode(kind, out.node)
	}
	if out.same == "" || kind == consoleapi.OtherCondition {
		out.same = e.Key
	}
	out.Subject = consoleapi.Subject{
		Cluster: pointer(cluster), Namespace: pointer(namespace), Service: pointer(text(e, names.ServiceName)),
		Pod: pointer(text(e, names.K8sPodName)), Node: pointer(node), Device: pointer(out.device.Name),
		SlurmCluster: pointer(slurm), Job: pointer(text(e, names.SlurmJobID)),
	}
	return out
}

func same(parts ...string) string { return strings.Join(parts, "\x00") }

func sameDevice(kind consoleapi.Attention, device Place, code string) string {
	return same("device", string(kind), device.Cluster, device.Name, code)
}

func sameNode(kind consoleapi.Attention, node Place) string {
	return same("node", string(kind), node.Cluster, node.Name)
}

func sameService(kind consoleapi.Attention, s Service) string {
	return same("service", string(kind), s.Cluster, s.Slurm, s.Namespace, s.Name)
}

// sameExporter is one condition, whatever its reason. The pod of a node's exporter, and
// so its address, changes with every restart. What has no port is read on the node itself.
func sameExporter(cluster, node, address, port string) string {
	if node != "" {
		return same("exporter", cluster, node, cmp.Or(port, address))
	}
	return same("exporter", cluster, address, port)
}

func pointer(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
