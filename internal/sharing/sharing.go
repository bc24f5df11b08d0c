// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package sharing reads what schedulers that share boards among pods write on pods and
// nodes. The kubelet's device plugin API has no place for it.
//
// A scheduler is one entry of the table, and one file.
package sharing // import "github.com/otelcol-gpu/otelcol-gpu/internal/sharing"

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MaxAnnotation is the longest annotation that is read, in bytes.
const MaxAnnotation = 64 << 10

// maxGrants bounds the boards of which one pod has a part.
const maxGrants = 1024

// What can be wrong with what a scheduler wrote; Problem is the short form.
var (
	ErrTooLong       = errors.New("the annotation is longer than 64 KiB")
	ErrMalformed     = errors.New("the annotation does not have the scheduler's form")
	ErrShare         = errors.New("the share is not above 0 and at most 1")
	ErrUnknownDevice = errors.New("the node does not have the device")
	ErrUnlisted      = errors.New("the kubelet lists no device for the pod: name the resource of the scheduler's device plugin in resource_names")
	ErrUnknownMemory = errors.New("the memory of the board is not known")
)

// problems are the short forms, by error.
var problems = []struct {
	err  error
	name string
}{
	{ErrTooLong, "too_long"}, {ErrShare, "share"}, {ErrUnknownDevice, "unknown_device"}, {ErrUnlisted, "unlisted"}, {ErrUnknownMemory, "unknown_memory"},
}

// Problem is one word for an error of this package.
func Problem(err error) string {
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return p.name
		}
	}
	return "malformed"
}

// Grant is a part of one board that a scheduler gave to a container.
type Grant struct {
	// Container is empty where it is not known which of the pod's containers has it.
	Container string
	// Board is a key of the scheduler's Boards.
	Board string
	// Memory is what was granted, in the unit of Board.Memory; 0: Share is set instead.
	Memory int64
	// Share is the granted part of the board, 0..1.
	Share float64
	// Cores is the part of the board's compute, 0..1; 0: it is not limited.
	Cores float64
}

// Board is a board of the node as a scheduler knows it.
type Board struct {
	ID     string // hw.id
	Memory int64  // in the scheduler's unit; 0: not known
}

// Boards are those of the node by the key that the scheduler's grants have.
type Boards map[string]Board

// Find returns the board of a grant, and which part of it was granted. With an error the part
// is 0, or what was granted of a board that is not known.
func (b Boards) Find(g Grant) (id string, share float64, err error) {
	board, known := b[g.Board]
	share = g.Share
	if g.Memory != 0 && known {
		if board.Memory <= 0 {
			return board.ID, 0, ErrUnknownMemory
		}
		share = float64(g.Memory) / float64(board.Memory)
	}
	possible := share > 0 && share <= 1 // NaN is neither
	switch {
	case !known && !possible:
		return "", 0, ErrUnknownDevice
	case !known:
		return "", share, ErrUnknownDevice
	case !possible:
		return board.ID, 0, ErrShare
	}
	return board.ID, share, nil
}

// Scheduler is one that shares boards.
type Scheduler struct {
	// Name is the value of gpu.sharing, and what the configuration has.
	Name string
	// Annotations are those of pods of which one means that the scheduler shared a board.
	Annotations []string
	// Parts is true where the kubelet lists a part of some board, perhaps of another one,
	// for each container: GPU-<uuid>-<n>.
	Parts bool
	// Resource is the extended resource of these parts, and of the boards, unless the scheduler
	// was configured with another one.
	Resource string

	grants func(pod *corev1.Pod) ([]Grant, error)
	boards func(node *corev1.Node) Boards // nil: the node's object has none
}

// schedulers is the table.
var schedulers = []*Scheduler{hami, volcano, koordinator, kai}

// Names are the names of all schedulers.
func Names() []string {
	names := make([]string, len(schedulers))
	for i, s := range schedulers {
		names[i] = s.Name
	}
	return names
}

// Named is the scheduler of a name; nil for an unknown one.
func Named(name string) *Scheduler {
	i := slices.IndexFunc(schedulers, func(s *Scheduler) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return schedulers[i]
}

// PluginOf is the scheduler with a device plugin for which a resource is the default; nil for none.
func PluginOf(resource string) *Scheduler {
	i := slices.IndexFunc(schedulers, func(s *Scheduler) bool { return s.Parts && s.Resource == resource })
	if i < 0 {
		return nil
	}
	return schedulers[i]
}

// Detect returns the schedulers that shared a board with a pod.
func Detect(pod *corev1.Pod) (found []*Scheduler) {
	for _, s := range schedulers {
		if s.wrote(pod) {
			found = append(found, s)
		}
	}
	return found
}

func (s *Scheduler) wrote(pod *corev1.Pod) bool {
	return slices.ContainsFunc(s.Annotations, func(key string) bool { return pod.Annotations[key] != "" })
}

// Boards are those that a node's object has for the scheduler.
func (s *Scheduler) Boards(node *corev1.Node) Boards {
	if s.boards == nil {
		return nil
	}
	return s.boards(node)
}

// Pod is what is kept of a pod.
type Pod struct {
	Scheduler *Scheduler
	// Grants are what the scheduler gave to the pod; none with Err.
	Grants []Grant
	Err    error
	// Ended is set for a pod that has ended: what a kubelet still lists for it is not held.
	Ended bool
	// Starting is set for a pod with init containers that have not ended. The kubelet does not list
	// them, and one of them may use what it was granted.
	Starting bool
	// Group is set for a pod that holds a board for the members of a group, and
	// ReservedID is what the pod calls that board, if it does.
	Group, ReservedID string
}

// Reader takes what is needed out of pods.
type Reader struct {
	Schedulers []*Scheduler // the first that wrote something decides
	// Reservations are the namespaces of pods that hold boards for others.
	Reservations []string
}

// Keep is the Pod of an object, false where no scheduler shared a board with it.
func (r *Reader) Keep(obj any) (Pod, bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return Pod{}, false
	}
	if r.Reserves(pod.Namespace) {
		return reservation(pod), true
	}
	for _, s := range r.Schedulers {
		if !s.wrote(pod) {
			continue
		}
		p := Pod{Scheduler: s, Ended: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed}
		if p.Ended {
			return p, true
		}
		p.Starting = len(pod.Spec.InitContainers) > 0 && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue
		})
		for _, key := range s.Annotations {
			if len(pod.Annotations[key]) > MaxAnnotation {
				p.Err = ErrTooLong
				return p, true
			}
		}
		p.Grants, p.Err = s.grants(pod)
		if p.Err == nil && len(p.Grants) > maxGrants {
			p.Err = ErrMalformed
		}
		if p.Err != nil {
			p.Grants = nil
		}
		return p, true
	}
	return Pod{}, false
}

// Reserves reports whether pods of a namespace hold boards for others.
func (r *Reader) Reserves(namespace string) bool {
	return slices.Contains(r.Schedulers, kai) && slices.Contains(r.Reservations, namespace)
}
