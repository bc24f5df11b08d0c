// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"fmt"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// Demo is the built-in fleet of a vendor. At the time fault a board breaks, and from down
// on, for downFor, the exporter of the first node answers without devices, or refuses.
func Demo(vendor string, fault, down, downFor time.Duration) (Config, error) {
	busy := func(share float64) *float64 { return &share }
	pod := func(namespace, name string, share float64, devices ...string) Pod {
		return Pod{Namespace: namespace, Name: name, Container: "main", Devices: devices, Busy: busy(share)}
	}
	first := 0
	after, silent, silentFor := strictjson.Duration(fault), strictjson.Duration(down), strictjson.Duration(downFor)
	switch vendor {
	case AMD:
		return Config{
			Seed: 1,
			Nodes: []Node{
				{Name: "amd-node-a", Model: "MI300X", Boards: 4, Compute: "cpx", Memory: "nps4", Mixed: true, Pods: []Pod{
					pod("inference", "llama-6b8d5c9f7d-k2x9p", .7, "0:0", "0:1", "0:2", "0:3"), pod("inference", "whisper-5c7b9d8f64-w8kzt", .3, "1:0"),
					pod("notebooks", "jupyter-84d7bf6c95-b6n2x", .05, "2:5"),
				}},
				{Name: "amd-node-b", Model: "MI355X", Boards: 4, Pods: []Pod{
					pod("training", "trainer-7f9c6d5b48-t5hvn", .9, "0", "1"), pod("inference", "llama-6b8d5c9f7d-m7wq4", .6, "2"),
				}},
				{Name: "amd-node-c", Model: "MI250X", Boards: 2, Version: "1.3", Pods: []Pod{pod("inference", "llama-6b8d5c9f7d-z4j6c", .5, "0")}},
			},
			Faults: []Fault{
				{Node: "amd-node-b", Kind: RAS, Board: &first, Code: 20, After: after},
				{Node: "amd-node-a", Kind: EmptyPage, After: silent, For: silentFor},
			},
		}, nil
	case Gaudi:
		return Config{
			Seed: 1,
			Nodes: []Node{
				{Name: "gaudi-node-a", Model: "Gaudi3", Boards: 8, Pods: []Pod{
					pod("inference", "llama-6b8d5c9f7d-k2x9p", .7, "0", "1", "2", "3"), pod("inference", "whisper-5c7b9d8f64-w8kzt", .3, "4"),
				}},
				{Name: "gaudi-node-b", Model: "Gaudi2", Boards: 8, Pods: []Pod{
					pod("training", "trainer-7f9c6d5b48-t5hvn", .9, "0", "1", "2", "3"), pod("inference", "llama-6b8d5c9f7d-m7wq4", .6, "6"),
				}},
				{Name: "gaudi-node-c", Model: "Gaudi2", Boards: 2, Pods: []Pod{pod("inference", "llama-6b8d5c9f7d-z4j6c", .5, "0")}},
			},
			Faults: []Fault{
				{Node: "gaudi-node-b", Kind: RowsPending, Board: &first, After: after},
				{Node: "gaudi-node-b", Kind: LinkDown, Board: &first, Code: 2, After: after},
				{Node: "gaudi-node-a", Kind: EmptyPage, After: silent, For: silentFor},
			},
		}, nil
	case Intel:
		return Config{
			Seed: 1,
			Nodes: []Node{
				{Name: "intel-node-a", Model: "Max1550", Version: "1", Boards: 4, Pods: []Pod{
					pod("inference", "llama-6b8d5c9f7d-k2x9p", .7, "0", "1"), pod("inference", "whisper-5c7b9d8f64-w8kzt", .3, "2"),
				}},
				{Name: "intel-node-b", Model: "B60", Version: "2", Boards: 2, Pods: []Pod{pod("inference", "llama-6b8d5c9f7d-m7wq4", .6, "1")}},
				{Name: "intel-node-c", Model: "Flex140", Version: "1", Boards: 4, Replicas: 2, Pods: []Pod{
					pod("media", "transcode-7f9c6d5b48-t5hvn", .4, "0::0"), pod("media", "transcode-7f9c6d5b48-q7v8d", .4, "0::1"),
					pod("inference", "llama-6b8d5c9f7d-z4j6c", .5, "2::0"),
				}},
			},
			Faults: []Fault{
				{Node: "intel-node-b", Kind: ECC, Board: &first, After: after},
				{Node: "intel-node-a", Kind: NoData, After: silent, For: silentFor},
			},
		}, nil
	}
	return Config{}, fmt.Errorf("unknown vendor %q: use %s, %s or %s", vendor, AMD, Gaudi, Intel)
}
