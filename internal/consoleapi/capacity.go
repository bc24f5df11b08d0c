// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package consoleapi // import "github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"

import "time"

// CapacityAnswer is what the scheduler has to give, and what waits for it.
type CapacityAnswer struct {
	Freshness Freshness `json:"freshness"`
	// Size is the number of devices of the requests that Fits and Nodes are about.
	Size int `json:"size"`
	// Reason is NoScheduling where gpu_scheduling reports nothing; null otherwise.
	Reason *string `json:"reason"`
	// Silent are the clusters of which gpu_scheduling reported, and reports no more.
	Silent []SilentCluster `json:"silent"`
	Pools  []CapacityPool  `json:"pools"`
	// Waiting are the first groups of pods that wait, those that wait for longest first;
	// WaitingTotal counts all groups.
	Waiting      []WaitingPods `json:"waiting"`
	WaitingTotal int           `json:"waiting_total"`
	// Hints are sentences about pods that wait although devices are free.
	Hints []CapacityHint `json:"hints"`
	// Nodes are a page of those that were asked for, Total counts all of them; NodesKnown is
	// false where gpu_scheduling reports no nodes (nodes: false).
	Nodes      []CapacityNode `json:"nodes"`
	NodesKnown bool           `json:"nodes_known"`
	Total      int            `json:"total"`
	Next       *string        `json:"next"`
}

// NoScheduling is the reason of a CapacityAnswer without anything.
const NoScheduling = "no_scheduling"

// SilentCluster is a cluster of which the newest evaluation is too old.
type SilentCluster struct {
	Cluster *string   `json:"cluster"`
	Last    time.Time `json:"last"`
}

// CapacityPool are the devices of a resource and model in a cluster. Counts are null where
// they are not known.
type CapacityPool struct {
	Cluster     *string `json:"cluster"`
	Resource    string  `json:"resource"`
	Model       *string `json:"model"`
	Allocatable *int    `json:"allocatable"`
	Requested   *int    `json:"requested"`
	Free        *int    `json:"free"`
	Stranded    *int    `json:"stranded"`
	// StrandedBy has the first reason that applies to each stranded device.
	StrandedBy []StrandedDevices `json:"stranded_by"`
	// Fits are the requests of Size devices that would find a place now, FitNodes the nodes
	// where one would.
	Fits     *int `json:"fits"`
	FitNodes *int `json:"fit_nodes"`
	// Requests are the sizes that gpu_scheduling reports.
	Requests []RequestFit `json:"requests"`
	// Fragmentation is that of requests as pods asked of late; null: nothing is free, or no
	// pod asked.
	Fragmentation *float64 `json:"fragmentation"`
}

// StrandedDevices are devices that are free and of no use now, by reason.
type StrandedDevices struct {
	Reason  string `json:"reason"`
	Devices int    `json:"devices"`
}

// RequestFit is how many requests of a size find a place, and the part of the free devices
// that they cannot use.
type RequestFit struct {
	Size          int      `json:"size"`
	Fits          *int     `json:"fits"`
	Fragmentation *float64 `json:"fragmentation"`
}

// WaitingPods are the pods of a namespace and queue that wait for one reason and resource.
type WaitingPods struct {
	Cluster   *string `json:"cluster"`
	Namespace string  `json:"namespace"`
	Queue     *string `json:"queue"`
	Reason    string  `json:"reason"`
	Resource  string  `json:"resource"`
	Pods      *int    `json:"pods"`
	Devices   *int    `json:"devices"`
	// Oldest is since when the oldest pod of the namespace, queue and reason waits, in
	// seconds.
	Oldest *float64 `json:"oldest"`
}

// CapacityHint is a sentence about a resource.
type CapacityHint struct {
	Cluster  *string `json:"cluster"`
	Resource string  `json:"resource"`
	Text     string  `json:"text"`
}

// CapacityNode is the devices of a resource on a node.
type CapacityNode struct {
	Cluster     *string `json:"cluster"`
	Node        string  `json:"node"`
	Resource    string  `json:"resource"`
	Model       *string `json:"model"`
	Allocatable *int    `json:"allocatable"`
	Requested   *int    `json:"requested"`
	Free        *int    `json:"free"`
	Stranded    *int    `json:"stranded"`
	// Fits are the requests of Size devices that fit there now.
	Fits *int `json:"fits"`
	// Schedulable is false where the node is cordoned; null: nothing reports it.
	Schedulable *bool `json:"schedulable"`
}
