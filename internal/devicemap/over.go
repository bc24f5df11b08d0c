// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package devicemap

import "fmt"

// Over names the limit of a target that a page is over, empty where it is over none.
type Over string

// The limits of a target. OverLines is found by the reader of the page.
var (
	OverDevices  = over(maxDevices, "GPUs and MIG instances")
	OverLines    = over(MaxLines, "lines")
	OverHolders  = over(maxHolders, "pods on one GPU")
	OverXIDCodes = over(maxXIDCodes, "XID codes of one GPU")
	OverUnmapped = over(maxUnmapped, "series of families that are not in the field table")
)

func over(limit int, of string) Over { return Over(fmt.Sprintf("more than %d %s", limit, of)) }

// beyond counts a row that is over a limit. The first of a page is named.
func (t *Target) beyond(limit Over) {
	t.page.refused[Limit]++
	if t.page.over == "" {
		t.page.over = limit
	}
}
