// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Architectures as nvmlDeviceGetArchitecture numbers them. 0 is a driver that does not report it,
// and older than Ada.
const (
	ampere      = 7
	ada         = 8
	archUnknown = 1<<32 - 1
)

// guest is nvmlDeviceGetVirtualizationMode of a vGPU.
const guest = 2

// plan is what to read of a board.
type plan struct {
	board, boardGPM       []nvmlproto.Reading
	instance, instanceGPM []nvmlproto.Reading
}

// newPlan chooses the readings of a request for a board. hourly is whether to read what
// hardly ever changes.
func newPlan(request *nvmlproto.Request, b *nvmlproto.Board, hourly bool) plan {
	var p plan
	for _, r := range nvmlproto.Readings {
		if !r.In(request.Groups) || (r.Hourly && !hourly) || !sensible(request, b, &r) {
			continue
		}
		switch {
		case r.Method == nvmlproto.MethodGPM:
			if slices.Contains(request.Groups, r.Group) { // else it is for instances alone
				p.boardGPM = append(p.boardGPM, r)
			}
			if r.Instances {
				p.instanceGPM = append(p.instanceGPM, r)
			}
			continue
		case r.Instances:
			p.instance = append(p.instance, r)
		}
		p.board = append(p.board, r)
	}
	return p
}

// sensible is whether a reading means what it is named on this board.
func sensible(request *nvmlproto.Request, b *nvmlproto.Board, r *nvmlproto.Reading) bool {
	switch {
	case r.Method == nvmlproto.MethodPCIe:
		return request.PCIe && !b.GPM
	case r.Method == nvmlproto.MethodLicence:
		return b.Virtual == guest
	case r.Method == nvmlproto.MethodThreshold:
		return b.Arch < ada // later, it is not a temperature but a margin
	case r.Method == nvmlproto.MethodMargin:
		return b.Arch >= ada && b.Arch != archUnknown
	case strings.HasPrefix(r.Name, "retired."):
		return b.Arch < ampere
	case strings.HasPrefix(r.Name, "remapped."):
		return len(b.Instances) == 0
	}
	return true
}
