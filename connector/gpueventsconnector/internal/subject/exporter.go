// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/event"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
)

// ExporterID is the identity of an exporter. On a known node it is the port: the
// address is that of a pod, and changes with each of its restarts. Elsewhere it is
// address and port. What is read on the node itself, as nvml does, has a name as its address
// and no port.
type ExporterID struct {
	Cluster, Node, Address string
	Port                   int64
}

// Name is the exporter's name on its node, or among the exporters without one.
func (id ExporterID) Name() string {
	port := strconv.FormatInt(id.Port, 10)
	switch {
	case id.Address == "":
		return port
	case id.Port == 0:
		return id.Address
	}
	return id.Address + ":" + port
}

// ExporterNamed returns the exporter with that name.
func ExporterNamed(cluster, node, name string) (id ExporterID, ok bool) {
	id.Cluster, id.Node = cluster, node
	port := name
	if i := strings.LastIndexByte(name, ':'); i >= 0 {
		id.Address, port = name[:i], name[i+1:]
	}
	n, err := strconv.ParseInt(port, 10, 64)
	if err != nil && id.Address == "" && name != "" {
		id.Address = name
		return id, true
	}
	id.Port = n
	return id, err == nil && id.Name() == name
}

// Exporter is an exporter, with the address that its last points came from.
type Exporter struct {
	ID      ExporterID
	Address string // empty: not known
	Port    int64  // at that address; 0: it has none
}

// About makes the exporter the subject of an event.
func (x Exporter) About(ev *event.Event) {
	ev.Key = event.Key(ev.Name, x.ID.Cluster, x.ID.Node, x.ID.Name())
	ev.Resource = func(attrs pcommon.Map) {
		event.PutTexts(attrs, names.K8sClusterName, x.ID.Cluster, names.K8sNodeName, x.ID.Node, names.ServerAddress, x.Address)
		if x.Address != "" && x.Port != 0 {
			attrs.PutInt(names.ServerPort, x.Port)
		}
	}
}

// String names the exporter in a sentence.
func (x Exporter) String() string {
	out := "The exporter"
	if x.Address != "" {
		out += " at " + event.Clean(ExporterID{Address: x.Address, Port: x.Port}.Name())
	} else if x.ID.Node == "" {
		out += " at " + event.Clean(x.ID.Name())
	}
	if x.ID.Node != "" {
		out += " on node " + event.Clean(x.ID.Node)
	}
	return out
}
