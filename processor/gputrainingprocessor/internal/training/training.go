// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package training computes what follows from the metrics of training jobs and the devices that
// they have. It has no clock, no goroutine and no I/O: metrics and the time are passed in.
//
// A figure that cannot be known is absent, for one reason of a closed list.
package training

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-gpu/otelcol-gpu/internal/gpuspecs"
	"github.com/otelcol-gpu/otelcol-gpu/internal/names"
	"github.com/otelcol-gpu/otelcol-gpu/internal/points"
)

// Config of State.
type Config struct {
	Window     time.Duration // of figures, at least
	RunTTL     time.Duration // since the last point of a run until it is forgotten
	MaxRuns    int
	MaxDevices int
	// FP8Peak is the precision of the peak that runs in fp8 are measured against: "" for none.
	FP8Peak gpuspecs.Precision
	// Lookup returns the peaks of a device by its hw.model.
	Lookup func(model string) (gpuspecs.Spec, bool)
}

// heldFor is for how long a device of which nothing more arrives still counts as held. Its node may be
// silent, and a figure over the others would be too high: so there is none after that, until the run
// starts again, on what it then has.
const heldFor = 5 * time.Minute

// jump is by how much a job's clock may differ from ours over an interval.
const jump = 30 * time.Second

// Reason is why a run has no MFU.
type Reason string

// The reasons, in the order in which they are looked for. Implausible is a figure above 1, which is
// dropped.
const (
	Fine          Reason = ""
	NoTokens      Reason = "no_tokens"
	TooEarly      Reason = "too_early"
	Silent        Reason = "silent"
	SeveralRuns   Reason = "several_runs"
	NoModel       Reason = "no_model_figures"
	NoPrecision   Reason = "no_precision"
	FP8           Reason = "fp8"
	NoDevices     Reason = "no_devices"
	SilentDevice  Reason = "silent_device"
	Unresolved    Reason = "unresolved_device"
	Partitioned   Reason = "partitioned_device"
	Shared        Reason = "shared_device"
	UnknownDevice Reason = "unknown_model"
	MixedDevices  Reason = "mixed_models"
	NoPeak        Reason = "no_peak"
	DevicesChange Reason = "devices_changed"
	Implausible   Reason = "implausible"
)

// Refusal is why a point is left out.
type Refusal string

// The refusals.
const (
	WrongKind  Refusal = "wrong_kind"
	WrongUnit  Refusal = "wrong_unit"
	OutOfRange Refusal = "out_of_range"
	OtherRank  Refusal = "other_rank"
	// OtherProcess is one that runs beside the one that counts, and states no rank.
	OtherProcess Refusal = "other_process"
	Late         Refusal = "late"
	Clock        Refusal = "clock_jump"
	NoHolder     Refusal = "no_identity"
	LimitRuns    Refusal = "max_runs"
	LimitDevs    Refusal = "max_devices"
	// LimitSeries is of counters and histograms of one run: points with too many different attributes.
	LimitSeries Refusal = "series_of_run"
)

// Tally counts what Observe left out, and an example of each.
type Tally struct {
	Refused  map[Refusal]int
	Examples map[Refusal]string // name of a metric
}

func (t *Tally) refuse(why Refusal, metric string) {
	if t.Refused == nil {
		t.Refused, t.Examples = map[Refusal]int{}, map[Refusal]string{}
	}
	if t.Refused[why] == 0 {
		t.Examples[why] = metric
	}
	t.Refused[why]++
}

// Holder is who has devices and runs training: a service of Kubernetes, or a job of Slurm.
type Holder struct {
	Cluster, Namespace, Service string
	SlurmCluster, Job           string
}

// holderOf is the holder that a resource names; false where it names none.
func holderOf(attrs pcommon.Map) (h Holder, ok bool) {
	if job := points.Str(attrs, names.SlurmJobID); job != "" {
		return Holder{SlurmCluster: points.Str(attrs, names.SlurmClusterName), Job: job}, true
	}
	h = Holder{
		Cluster: points.Str(attrs, names.K8sClusterName), Namespace: points.Str(attrs, names.K8sNamespaceName), Service: points.Str(attrs, names.ServiceName),
	}
	return h, h.Service != ""
}

func (h Holder) put(attrs pcommon.Map) {
	for key, v := range map[string]string{
		names.K8sClusterName: h.Cluster, names.K8sNamespaceName: h.Namespace, names.ServiceName: h.Service,
		names.SlurmClusterName: h.SlurmCluster, names.SlurmJobID: h.Job,
	} {
		if v != "" {
			attrs.PutStr(key, v)
		}
	}
}

// State is what is known of runs and devices. It is not safe for concurrent use.
type State struct {
	cfg     Config
	runs    map[runKey]*run
	devices map[deviceKey]*device
	holders map[Holder]time.Time // since when each has devices
}

type runKey struct {
	holder Holder
	id     string
}

// New returns a State that knows nothing.
func New(cfg Config) *State {
	return &State{cfg: cfg, runs: map[runKey]*run{}, devices: map[deviceKey]*device{}, holders: map[Holder]time.Time{}}
}
