// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package deviceid

import "strings"

// rocmDigits is the length of the unique id in ROCm's GPU-<unique id>.
const rocmDigits = 16

// ParseVisible reads an entry of CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES that names a device:
//
//	GPU-<uuid>                      NVIDIA: a GPU
//	MIG-GPU-<uuid>/<gi>/<ci>        drivers before 470: the MIG instance GPU-<uuid>/<gi>
//	MIG-<uuid>                      a MIG instance; not resolved
//	GPU-<16 hexadecimal digits>     ROCm: a board of AMD
//
// It is false for an index, and for a part of an id, which CUDA allows.
func ParseVisible(entry string) (Kubelet, bool) {
	if k := parseNVIDIA(entry); !k.Shared && (k.Resolved || k.MIG != "") {
		return k, true
	}
	hex, ok := strings.CutPrefix(entry, gpuPrefix)
	if !ok || len(hex) != rocmDigits {
		return Kubelet{}, false
	}
	id := AMD(UniqueID(hex))
	if id == "" {
		return Kubelet{}, false
	}
	return Kubelet{ID: id, Device: id, Resolved: true}, true
}
