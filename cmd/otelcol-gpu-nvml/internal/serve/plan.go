// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Architectures as nvmlDeviceGetArchitecture numbers them. 0 is a driver that cannot say,
// and older than Ada.
const (
	ampere      = 7
	ada         = 8
	archUnknown = 1<<32 - 1
)

// guest is nvmlDeviceGetVirtualizationMode of a vGPU.
const guest = 2

// links is which of two readings of NVLink's bytes a board answers.
type links int

const (
	linksUnknown links = iota
	linksData          // nvlink.data, of all links at once
	linksBytes         // nvlink.bytes, link by link
)

// plan is what to read of a board.
type plan struct {
	board, fallback, boardGPM []nvmlproto.Reading
	instance, instanceGPM     []nvmlproto.Reading
}

// newPlan chooses the readings of a request for a board. hourly is whether to read what
// hardly ever changes.
func newPlan(request *nvmlproto.Request, b *nvmlproto.Board, known links, hourly bool) plan {
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
		switch of := linksOf(&r); {
		case of == linksBytes && known == linksUnknown:
			p.fallback = append(p.fallback, r)
		case of == linksUnknown || known == linksUnknown || of == known:
			p.board = append(p.board, r)
		}
	}
	return p
}

// sensible is whether a reading means what its name says on this board.
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

func linksOf(r *nvmlproto.Reading) links {
	switch {
	case strings.HasPrefix(r.Name, "nvlink.data."):
		return linksData
	case strings.HasPrefix(r.Name, "nvlink.bytes."):
		return linksBytes
	default:
		return linksUnknown
	}
}

// answering is which readings of NVLink's bytes are among the values.
func answering(values []nvmlproto.Value) links {
	for _, v := range values {
		if of := linksOf(&nvmlproto.Reading{Name: v.Name}); of != linksUnknown && v.Return == nvmlproto.Success {
			return of
		}
	}
	return linksUnknown
}
