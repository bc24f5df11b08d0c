// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package jobmap reads a folder in which scripts of Slurm have written which job has which GPU of
// a node, in one of five formats.
package jobmap

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Job is a job of Slurm as the files have it. What they do not have is "".
type Job struct {
	ID                       string // a number without leading zeros
	User, Account, Partition string
	QOS, Cluster, SLUID      string
	Restarts                 string // a number
	Comment                  string
	UID                      int64 // -1: not known
	Devices                  []Device
	Start                    time.Time // of its file, by the clock of the node
	naming
}

// naming is the content of a job's file in the folder of names.
type naming struct {
	Name, ArrayJobID, ArrayTaskID string
	NamedAt                       time.Time // zero: the name is not known
}

// Device is a GPU, or a part of one, of a job.
type Device struct {
	Index int // Slurm's own, or NVML's; -1: not known
	// ByPCI: Index is NVML's and DCGM's, in the order of PCI addresses.
	ByPCI bool
	// Instance is the GPU instance of MIG on the board with that index; "": all of it.
	Instance string
	// UUID is GPU-<uuid>, MIG-<uuid> or what ROCm has; "": not known.
	UUID string
}

// Reason is why a file, or an entry of it, is left out. The values are those of the attribute
// reason of the receiver's own metrics.
type Reason string

// The reasons.
const (
	Link         Reason = "link"
	NotRegular   Reason = "not_regular"
	Owner        Reason = "owner"
	TooLarge     Reason = "too_large"
	Unreadable   Reason = "unreadable"
	BadName      Reason = "bad_name"
	HalfWritten  Reason = "half_written"
	NotText      Reason = "not_text"
	BadVersion   Reason = "bad_version"
	BadID        Reason = "bad_id"
	BadValue     Reason = "bad_value"
	NoCluster    Reason = "no_cluster"
	BeyondBoards Reason = "beyond_boards"
	DeviceTwice  Reason = "device_twice"
	FilesLimit   Reason = "files_limit"
	Clock        Reason = "clock"
)

// Refused is the error of a file that is left out.
type Refused struct {
	Reason Reason
	Cause  string
}

func (r *Refused) Error() string { return string(r.Reason) + ": " + r.Cause }

func refuse(r Reason, format string, args ...any) error {
	return &Refused{r, fmt.Sprintf(format, args...)}
}

// ReasonOf is the reason of an error of this package, unreadable for another.
func ReasonOf(err error) Reason {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return Unreadable
}

const (
	maxText    = 256  // bytes of a user, an account and the like
	maxComment = 1024 // bytes
	maxDevices = 1024 // of one job on one node
	maxIndex   = 4095
)

// jobID is a number of Slurm without leading zeros.
func jobID(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 0 {
		return "", refuse(BadID, "%q is no job id", safetext.Strip(text, 40))
	}
	return strconv.FormatUint(n, 10), nil
}

func index(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n <= maxIndex
}

// name checks a text that becomes part of an identity.
func name(key, text string) (string, error) {
	switch {
	case len(text) > maxText:
		return "", refuse(BadValue, "%s is longer than %d bytes", key, maxText)
	case !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError):
		return "", refuse(NotText, "%s is not UTF-8", key)
	}
	return safetext.Strip(text, maxText), nil
}

// indices reads SLURM_JOB_GPUS.
func indices(text string) ([]int, error) {
	var all []int
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		n, ok := index(one)
		if !ok || len(all) == maxDevices {
			return nil, refuse(BadValue, "%q is no list of indices", safetext.Strip(text, 80))
		}
		all = append(all, n)
	}
	return all, nil
}

// uuids are the ids in CUDA_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES; nil where one of its entries is
// an index, which counts from 0 in every job and means nothing.
func uuids(text string) []string {
	var all []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		if _, ok := deviceid.ParseVisible(one); !ok || len(all) == maxDevices {
			return nil
		}
		all = append(all, one)
	}
	return all
}

// devices joins both lists: an id wins over an index, and has one where there are as many of each.
func devices(gpus, visible string) ([]Device, error) {
	numbers, err := indices(gpus)
	if err != nil {
		return nil, err
	}
	ids := uuids(visible)
	var all []Device
	for i, id := range ids {
		d := Device{Index: -1, UUID: id}
		if len(ids) == len(numbers) {
			d.Index = numbers[i]
		}
		all = append(all, d)
	}
	if len(ids) > 0 {
		return all, nil
	}
	for _, n := range numbers {
		all = append(all, Device{Index: n})
	}
	return all, nil
}
