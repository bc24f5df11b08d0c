// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/migprofile"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

const (
	maxBoards    = 64 // of a host
	maxInstances = 16 // of a board
	maxText      = 96 // bytes of an attribute: the longest buffer of the library
)

var uuids = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// validUUID reports whether a text is the UUID of a board (GPU) or of a compute instance
// (MIG).
func validUUID(kind, text string) bool {
	return strings.HasPrefix(text, kind) && uuids.MatchString(text)
}

// validText reports whether a text of the library can be an attribute.
func validText(text string) bool {
	return len(text) <= maxText && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}

// texts are the labels of a device's rows: in the order of their keys, none empty.
type texts [][2]string

func (t *texts) put(key, text string) {
	if text != "" {
		*t = append(*t, [2]string{key, text})
	}
}

// with returns the labels and more of them.
func (t texts) with(more ...[2]string) texts {
	all := slices.Concat(t, more)
	for i := range all { // nearly all of them are in order
		for j := i; j > 0 && all[j][0] < all[j-1][0]; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all
}

// boardTexts are the labels of a board, sorted. bad is called with the call that gave a text
// that is left out.
func boardTexts(b *nvmlproto.Board, driver, host string, bad func(call string)) texts {
	var t texts
	put := func(key, text, call string) {
		if !validText(text) {
			bad(call)
			return
		}
		t.put(key, text)
	}
	number := func(key string, n *int) {
		if n != nil && *n >= 0 {
			t.put(key, strconv.Itoa(*n))
		}
	}
	put(labelDriver, driver, "nvmlSystemGetDriverVersion")
	t.put(labelHost, host)
	number(labelIndex, b.Index)
	number(labelMinor, b.Minor)
	put(labelModel, b.Name, "nvmlDeviceGetName")
	if b.PCI != "" && deviceid.IsPCI(deviceid.PCIAddress(b.PCI)) {
		t.put(labelPCI, b.PCI)
	} else if b.PCI != "" {
		bad("nvmlDeviceGetPciInfo")
	}
	put(labelSerial, b.Serial, "nvmlDeviceGetSerial")
	t.put(labelUUID, b.UUID)
	put(labelVBIOS, b.VBIOS, "nvmlDeviceGetVbiosVersion")
	return t
}

// instanceTexts are the labels of an instance of the board with these labels, sorted.
func instanceTexts(board texts, i *nvmlproto.Instance, bad func(call string)) texts {
	var own texts
	own.put(labelInstance, strconv.Itoa(i.GI))
	// The UUID is a compute instance's: of several none is the device's.
	if len(i.Compute) == 1 && i.Compute[0].UUID != "" {
		if validUUID("MIG", i.Compute[0].UUID) {
			own.put(labelMIGUUID, i.Compute[0].UUID)
		} else {
			bad("nvmlDeviceGetUUID")
		}
	}
	if validText(i.Name) {
		_, profile := migprofile.Cut(i.Name)
		own.put(labelProfile, profile)
	} else {
		bad("nvmlDeviceGetName")
	}
	return board.with(own...)
}
