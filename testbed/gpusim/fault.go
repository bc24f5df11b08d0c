// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/random"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	ExporterDown    Kind = "exporter_down"     // nothing listens: connection refused
	ExporterSlow    Kind = "exporter_slow"     // answers after Delay
	ExporterFrozen  Kind = "exporter_frozen"   // answers with the page of the fault's start
	FieldsRenamed   Kind = "fields_renamed"    // the fields of the page have other names
	PageCut         Kind = "page_cut"          // the page ends in the middle of a line
	GPULost         Kind = "gpu_lost"          // the device vanishes from the page
	XID             Kind = "xid"               // Code is the device's last XID
	ThermalThrottle Kind = "thermal_throttle"  // hot, slow, and the counters show it
	RowRemapPending Kind = "row_remap_pending" // a row of memory waits for a reset to be remapped, or a page to be retired
	RowRemapFailure Kind = "row_remap_failure" // a row could not be remapped
	RemapWorn       Kind = "remap_worn"        // Count rows are remapped; without Count, a bank has no spare row
	SRAMExceeded    Kind = "sram_exceeded"     // more SRAM errors than a board may have
	RetiredPages    Kind = "retired_pages"     // Count pages are retired, or Rate a minute
	ECC             Kind = "ecc"               // Count uncorrected errors, or Rate a minute
	NVLinkErrors    Kind = "nvlink_errors"     // likewise, of Mode
	NVLinkDown      Kind = "nvlink_down"       // the path to the device with Index is lost
	PCIeReplays     Kind = "pcie_replays"      // likewise
	PCIeWidth       Kind = "pcie_width"        // the link has Lanes, and Generation
	SlowDevice      Kind = "slow_device"       // the clock is Percent slower
	Throttle        Kind = "throttle"          // a clock event of Mode
	Temperature     Kind = "temperature"       // Degrees hotter
	RecoveryAction  Kind = "recovery_action"   // the driver asks for Code
	Fabric          Kind = "fabric"            // it is Mode
	DCGMWatch       Kind = "dcgm_watch"        // DCGM's Watch gives Mode
	// Faults that end after For with a restart: counters that the driver keeps are 0 again.
	GPUReset      Kind = "gpu_reset"      // the device is away for For
	BoardReplaced Kind = "board_replaced" // likewise, and is another one then
	DriverReload  Kind = "driver_reload"  // every device of the node is; the driver has version Driver then
	Reboot        Kind = "reboot"         // the exporter is down for For; the boot id is another one then
	Acknowledged  Kind = "acknowledged"   // a person has cleared what was before
	Sentinel      Kind = "sentinel"       // Fields (default: all) are printed as DCGM's blanks
	ClockSkew     Kind = "clock_skew"     // Date header, and timestamps if asked for, are off by Skew
	NewPod        Kind = "new_pod"        // Pod starts and warms up
	PodGone       Kind = "pod_gone"       // the pod named by Pod is no more
	// What changes while the devices stay the same:
	ExporterReplaced Kind = "exporter_replaced" // the exporter's pod is another one: it prints Host, and answers on Port alone
	ExporterTwice    Kind = "exporter_twice"    // a second exporter beside the first: it prints Host, and answers on Port
	IndexChange      Kind = "index_change"      // the device has Index, and the device that had it takes its
	MIGReprofile     Kind = "mig_reprofile"     // the MIG instance has Profile under the same id
	// Of the engine of Pod, or of all engines of the node:
	EngineRestart = Kind(engines.Restart)   // it is gone for For, and counts from zero
	ModelSwap     = Kind(engines.ModelSwap) // it serves Model from then on
	EngineUpgrade = Kind(engines.Upgrade)   // a restart as Engine
	PageRace      = Kind(engines.PageRace)  // a bucket of its page falls
	EngineSleep   = Kind(engines.Sleep)     // it sleeps
	SlowPage      = Kind(engines.SlowPage)  // its page comes after Delay
	PageFails     = Kind(engines.PageFails) // its page is an error 500
)

var kinds = []Kind{
	ExporterDown, ExporterSlow, ExporterFrozen, FieldsRenamed, PageCut, GPULost, XID, ThermalThrottle, RowRemapPending, Sentinel, ClockSkew, NewPod, PodGone,
	RowRemapFailure, RemapWorn, SRAMExceeded, RetiredPages, ECC, NVLinkErrors, NVLinkDown, PCIeReplays, PCIeWidth, SlowDevice, Throttle, Temperature,
	RecoveryAction, Fabric, DCGMWatch, GPUReset, BoardReplaced, DriverReload, Reboot, Acknowledged,
	ExporterReplaced, ExporterTwice, IndexChange, MIGReprofile, EngineRestart, ModelSwap, EngineUpgrade, PageRace, EngineSleep, SlowPage, PageFails,
}

// Fault is something that goes wrong, or changes, on one node.
type Fault struct {
	Node string `json:"node"`
	Kind Kind   `json:"kind"`
	// Device is "<index>", or "<index>:<position>" for a MIG instance; "" is
	// every device of the node. An XID of a whole device in MIG mode is on no
	// row of the page, as with the real exporter.
	Device string   `json:"device,omitempty"`
	After  Duration `json:"after,omitempty"` // scripted: from the start; else from now
	For    Duration `json:"for,omitempty"`   // 0: until it is ended
	Code   int      `json:"code,omitempty"`  // xid, recovery_action
	Delay  Duration `json:"delay,omitempty"` // exporter_slow, slow_page; default 20s
	Every  int      `json:"every,omitempty"` // both: only every n-th request of a page
	Skew   Duration `json:"skew,omitempty"`  // clock_skew; default 2m; may be negative
	// Timestamps puts explicit timestamps on the samples (clock_skew).
	Timestamps bool `json:"timestamps,omitempty"`
	// Mode of page_cut: "short" (default) promises more bytes than it sends,
	// "clean" ends the body as if it were whole. The modes of other kinds are in modes.
	Mode string `json:"mode,omitempty"`
	// Count is how many happen at the start (default 1 of what can be counted); with Rate
	// they happen for as long as the fault lasts, so many a minute.
	Count int     `json:"count,omitempty"`
	Rate  float64 `json:"rate,omitempty"`
	// Lifetime ECC errors are counted by the lifetime counters alone.
	Lifetime   bool    `json:"lifetime,omitempty"`
	Corrected  bool    `json:"corrected,omitempty"`  // ecc, retired_pages
	Lanes      int     `json:"lanes,omitempty"`      // pcie_width; default 8 without Generation
	Generation int     `json:"generation,omitempty"` // pcie_width
	Percent    float64 `json:"percent,omitempty"`    // slow_device; default 20
	Degrees    float64 `json:"degrees,omitempty"`    // temperature; default 65
	Watch      string  `json:"watch,omitempty"`      // dcgm_watch; default PCIE
	Driver     string  `json:"driver,omitempty"`     // driver_reload; default the same version

	Fields []string `json:"fields,omitempty"` // sentinel
	Pod    *Pod     `json:"pod,omitempty"`    // new_pod: the pod; pod_gone and those of engines: namespace and name
	// Host is what the other exporter prints as Hostname: by default a name of a pod.
	Host string `json:"host,omitempty"`
	// Port of the other exporter; exporter_replaced without one stays at its address.
	Port    int    `json:"port,omitempty"`
	Index   int    `json:"index,omitempty"`   // index_change, nvlink_down
	Profile string `json:"profile,omitempty"` // mig_reprofile
	Engine  string `json:"engine,omitempty"`  // engine_upgrade
	Model   string `json:"model,omitempty"`   // model_swap
}

// FaultStatus is a fault with its place in time, as seconds since the start.
type FaultStatus struct {
	ID    string `json:"id"`
	State string `json:"state"` // scheduled, active or ended
	Fault
	StartSeconds float64  `json:"start_seconds"`
	EndSeconds   *float64 `json:"end_seconds,omitempty"`
}

// maxFaults bounds what a fleet remembers: ended faults stay, because they are
// part of what the counters add up.
const maxFaults = 10000

// ErrTooManyFaults is returned when a fleet has seen all the faults it can.
var ErrTooManyFaults = fmt.Errorf("this fleet has had %d faults, which is its limit: start a new one", maxFaults)

// ErrNoFault is returned for an unknown fault id.
var ErrNoFault = errors.New("no such fault")

type fault struct {
	Fault
	id         string
	node       *node
	target     slotRef
	everywhere bool // no Device given
	slots      []heldSlot
	start, end time.Duration // since the fleet's start; end < 0 is open
	frozen     []byte        // exporter_frozen: the page, once it was asked for
	asked      int           // exporter_slow, slow_page: requests since its start
	reprofiled instance      // mig_reprofile: its id counts for nothing
}

// holds reports whether the fault is active at a time since the start.
func (f *fault) holds(at time.Duration) bool {
	return at >= f.start && (f.end < 0 || at < f.end)
}

// holdsStep reports the same for second k: what changes values takes effect
// with the second it falls into.
func (f *fault) holdsStep(k int64) bool {
	return k >= step(Duration(f.start)) && (f.end < 0 || k < step(Duration(f.end)))
}

// covers reports whether a row of the page is one that the fault is about.
func (f *fault) covers(device, position int) bool {
	return f.everywhere || f.target.device == device && (f.target.position < 0 || f.target.position == position)
}

// hits is covers for events that belong to one entity only. A MIG instance has
// seen nothing that was before it.
func (f *fault) hits(b *board, position int) bool {
	if position >= 0 && step(Duration(f.start)) < b.migSince {
		return false
	}
	return f.everywhere || f.target == slotRef{b.index, position}
}

func (f *fault) status(at time.Duration) FaultStatus {
	s := FaultStatus{ID: f.id, State: "active", Fault: f.Fault, StartSeconds: f.start.Seconds()}
	if f.end >= 0 {
		s.EndSeconds = new(float64)
		*s.EndSeconds = f.end.Seconds()
	}
	switch {
	case f.end >= 0 && at >= f.end:
		s.State = "ended"
	case at < f.start:
		s.State = "scheduled"
	}
	return s
}

// prepare checks a fault and places it in time.
func (fl *Fleet) prepare(spec Fault, now time.Duration) (*fault, error) {
	n := fl.node(spec.Node)
	if n == nil {
		return nil, fmt.Errorf("fault: unknown node %q: use one of %s", spec.Node, strings.Join(fl.Nodes(), ", "))
	}
	if !slices.Contains(kinds, spec.Kind) {
		return nil, fmt.Errorf("fault: unknown kind %q: use one of %v", spec.Kind, kinds)
	}
	if spec.After < 0 || spec.For < 0 || spec.Delay < 0 || spec.Every < 0 {
		return nil, errors.New("fault: after, for, delay and every cannot be negative")
	}
	f := &fault{Fault: spec, node: n, everywhere: spec.Device == "", start: now + time.Duration(spec.After), end: -1}
	if spec.For > 0 {
		f.end = f.start + time.Duration(spec.For)
	}
	if !f.everywhere {
		var err error
		if f.target, err = parseSlot(spec.Device); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
		if err := n.check(f.target, true); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
	}
	if f.engines() {
		if err := f.prepareEngines(); err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
	}
	if err := f.prepareHarm(); err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	switch spec.Kind {
	case ExporterSlow, SlowPage:
		if f.Delay == 0 {
			f.Delay = Duration(20 * time.Second)
		}
	case ClockSkew:
		if f.Skew == 0 {
			f.Skew = Duration(2 * time.Minute)
		}
	case PageCut:
		if f.Mode == "" {
			f.Mode = "short"
		}
		if f.Mode != "short" && f.Mode != "clean" {
			return nil, fmt.Errorf("fault: page_cut has no mode %q: use short or clean", f.Mode)
		}
	case RecoveryAction:
		if f.Code < 1 || f.Code > 7 {
			return nil, errors.New("fault: recovery_action needs a code from 1 to 7")
		}
	case GPUReset, BoardReplaced, DriverReload, Reboot, Acknowledged:
		f.end = f.start + time.Duration(f.For)
		if f.Kind == BoardReplaced && (f.everywhere || f.target.position >= 0) {
			return nil, errors.New("fault: board_replaced needs one whole device")
		}
	case XID:
		if f.Code <= 0 {
			return nil, errors.New("fault: xid needs a code above 0, such as 79")
		}
	case NewPod, PodGone:
		if f.Pod == nil || f.Pod.Name == "" || f.Pod.Namespace == "" {
			return nil, fmt.Errorf("fault: %s needs a pod with namespace and name", f.Kind)
		}
		pod := *f.Pod // the caller keeps its own
		f.Pod = &pod
		if f.Kind == NewPod {
			f.Pod.Start = Duration(max(f.start, 1)) // 0 would be a settled pod
			slots, err := n.podSlots(f.Pod)
			if err != nil {
				return nil, fmt.Errorf("fault: %w", err)
			}
			f.slots = slots
		}
	case ExporterReplaced, ExporterTwice:
		if f.Port < 0 || f.Port > 65535 || f.Kind == ExporterTwice && f.Port == 0 {
			return nil, fmt.Errorf("fault: %s cannot listen on port %d: use a free one", f.Kind, f.Port)
		}
		if f.Host == "" {
			f.Host = "dcgm-exporter-" + random.UUID(random.Stream(fl.cfg.Seed, fmt.Sprint("host/", len(fl.faults))))[:5]
		}
	case IndexChange, NVLinkDown:
		if f.everywhere || f.target.position >= 0 || f.Index < 0 || f.Index >= len(n.boards) {
			return nil, fmt.Errorf("fault: %s needs one whole device, and an index from 0 to %d", f.Kind, len(n.boards)-1)
		}
	case MIGReprofile:
		if f.everywhere || f.target.position < 0 {
			return nil, errors.New("fault: mig_reprofile needs the device of a MIG instance, such as 3:0")
		}
		b := n.boards[f.target.device]
		other, err := b.model.layout([]string{f.Profile})
		if err != nil {
			return nil, fmt.Errorf("fault: %w", err)
		}
		if have := b.instances[f.target.position]; other[0].memoryMiB < have.memoryMiB {
			return nil, fmt.Errorf("fault: mig_reprofile makes no instance smaller, and %s is than %s: use a larger profile", f.Profile, have.profile)
		}
		f.reprofiled = other[0]
	}
	return f, nil
}

// modes are those of the kinds that have some, the default first.
var modes = map[Kind][]string{
	NVLinkErrors: {"replay", "recovery", "crc_flit", "crc_data"},
	PCIeWidth:    {"always", "idle"}, // idle: a link that saves power while it is not used
	Throttle:     {"hw_thermal", "sw_thermal", "hw_power_brake", "sw_power"},
	Fabric:       {"unhealthy", "limited"},
	DCGMWatch:    {"fail", "warn"},
}

// prepareHarm checks the keys of what harms a board, and sets their defaults.
func (f *fault) prepareHarm() error {
	if all := modes[f.Kind]; all != nil {
		if f.Mode == "" {
			f.Mode = all[0]
		}
		if !slices.Contains(all, f.Mode) {
			return fmt.Errorf("%s has no mode %q: use one of %s", f.Kind, f.Mode, strings.Join(all, ", "))
		}
	}
	if f.Count < 0 || f.Rate < 0 || f.Lanes < 0 || f.Generation < 0 || f.Percent < 0 || f.Percent > 100 {
		return errors.New("count, rate, lanes and generation cannot be negative, and percent is at most 100")
	}
	switch f.Kind {
	case ECC, RetiredPages, NVLinkErrors, PCIeReplays:
		if f.Rate == 0 {
			f.Count = max(f.Count, 1)
		}
	case PCIeWidth:
		if f.Lanes == 0 && f.Generation == 0 {
			f.Lanes = 8
		}
	case SlowDevice:
		f.Percent = cmp.Or(f.Percent, 20)
	case Temperature:
		f.Degrees = cmp.Or(f.Degrees, 65)
	case DCGMWatch:
		f.Watch = cmp.Or(f.Watch, "PCIE")
	}
	return nil
}

// StartFault starts a fault now, or After from now.
func (fl *Fleet) StartFault(spec Fault) (FaultStatus, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	now := fl.elapsed(fl.clock())
	return fl.add(spec, now)
}

func (fl *Fleet) add(spec Fault, now time.Duration) (FaultStatus, error) {
	if len(fl.faults) >= maxFaults {
		return FaultStatus{}, ErrTooManyFaults
	}
	f, err := fl.prepare(spec, now)
	if err != nil {
		return FaultStatus{}, err
	}
	f.id = fmt.Sprintf("f%d", len(fl.faults)+1)
	fl.faults = append(fl.faults, f)
	f.node.faults = append(f.node.faults, f)
	f.node.rewind(step(Duration(f.start)))
	return f.status(now), nil
}

// EndFault ends a fault now. Ending an ended fault changes nothing.
func (fl *Fleet) EndFault(id string) (FaultStatus, error) {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	now := fl.elapsed(fl.clock())
	for _, f := range fl.faults {
		if f.id != id {
			continue
		}
		if f.end < 0 || now < f.end {
			f.end = max(now, f.start)
			f.frozen = nil
			f.node.rewind(step(Duration(f.end)))
		}
		return f.status(now), nil
	}
	return FaultStatus{}, fmt.Errorf("%w: %q", ErrNoFault, id)
}

// Faults lists every fault, in the order in which they were made.
func (fl *Fleet) Faults() []FaultStatus {
	fl.mu.Lock()
	defer fl.mu.Unlock()
	now := fl.elapsed(fl.clock())
	out := make([]FaultStatus, 0, len(fl.faults))
	for _, f := range fl.faults {
		out = append(out, f.status(now))
	}
	return out
}
