// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"testing"
)

func TestKueue(t *testing.T) {
	w := start(t)
	page := w.startKueue()
	fmt.Println(page)
	fmt.Println(w.kubectl("", "get", "clusterqueues,localqueues", "-A"))
}
