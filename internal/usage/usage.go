// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package usage is the row of the ledger: who had how much of which GPUs in one UTC hour.
// gpu_cost makes rows, gpu_store keeps them, reports read them. All amounts are whole
// numbers, so that sums are exact in any order.
package usage // import "github.com/otelcol-gpu/otelcol-gpu/internal/usage"

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/internal/prices"
)

// States of the parts of boards: values of gpu.capacity.state.
const (
	Held        = "held"
	Free        = "free"
	Stranded    = "stranded"
	Unavailable = "unavailable"
	Unknown     = "unknown"
)

// Key is what a row is of. Rows of different keys never overlap. Texts are empty where
// they are not known.
type Key struct {
	Cluster, Model, HostType, Region string
	CapacityType, NodePool           string
	Labels                           string // of the node: k=v,k=v, sorted; those that price rules match
	Profile                          string // of a MIG instance
	State                            string
	// Of rows with State Held. SlurmCluster is that of a job of Slurm: then Namespace is its account.
	Namespace, Service, Tenant, Pod, SlurmCluster string
	// Currency is that of the ledger, as in ISO 4217.
	Currency string
	// RateNano billionths of the currency, divided by RatePer, are the price of a whole
	// GPU for an hour. RatePer 0: there is no price, which is not a price of 0.
	RateNano, RatePer int64
	Kind              string // list or contracted
}

// Rate is the price of a whole GPU for an hour.
func (k *Key) Rate() prices.Rate { return prices.Rate{Nano: k.RateNano, Per: k.RatePer} }

// Compare orders keys by their texts, and then by price.
func (k *Key) Compare(o *Key) int {
	theirs := o.texts()
	for i, t := range k.texts() {
		if order := cmp.Compare(*t.value, *theirs[i].value); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(k.RateNano, o.RateNano), cmp.Compare(k.RatePer, o.RatePer))
}

// Amounts are what a row contains. Used, Idle and Unmeasured are parts of Time, and
// Unplaced is no part of it.
type Amounts struct {
	Time, Used, Idle, Unmeasured, Unplaced int64    // ms of a whole GPU
	Energy                                 [3]int64 // mJ: of whole boards, split by share, integrated from power
	Carbon                                 int64    // µg of carbon dioxide; -1: not known
}

// Row is the amounts of a key in one UTC hour.
type Row struct {
	Key
	Hour time.Time // its start, UTC
	// Day: the row is of the whole UTC day that begins at Hour. The store adds up hours
	// that are old.
	Day bool
	// Open: the hour is still running. A row that is not open replaces it.
	Open bool
	// Revision orders the rows of one key and hour: the highest counts. From 1.
	Revision uint32
	Amounts
	Contested    bool // the device was shared with another owner that claims all of it
	BoardMetered bool // Used is by the utilization of the whole board
	Estimated    bool // the share is an estimate
	Marginal     bool // Carbon is by a marginal intensity, a part of it at least; otherwise by an average one
}

// ID identifies the key and the hour: all revisions have the same.
func (r *Row) ID() string {
	h := sha256.New()
	var number [8]byte
	put := func(n int64) {
		binary.LittleEndian.PutUint64(number[:], uint64(n))
		h.Write(number[:])
	}
	for i, text := range r.texts() {
		if i == lateText && *text.value == "" {
			continue
		}
		put(int64(len(*text.value)))
		h.Write([]byte(*text.value))
	}
	put(r.RateNano)
	put(r.RatePer)
	put(r.Hour.Unix())
	return hex.EncodeToString(h.Sum(nil)[:16])
}
