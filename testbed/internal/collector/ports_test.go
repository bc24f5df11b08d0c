// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Processes that run side by side get different ports, and none gets a port twice.
func TestProcessesHaveTheirOwnPorts(t *testing.T) {
	const many = 3 * blockPorts
	if os.Getenv("PRINT_PORTS") != "" {
		ports, err := Free(many)
		require.NoError(t, err)
		fmt.Println("ports", strings.Trim(fmt.Sprint(ports), "[]"))
		return
	}
	seen := map[string]bool{}
	note := func(list string) {
		ports := strings.Fields(list)
		assert.Len(t, ports, many)
		for _, port := range ports {
			assert.False(t, seen[port], "%s is had twice", port)
			seen[port] = true
		}
	}
	for range 2 {
		ports, err := Free(many)
		require.NoError(t, err)
		note(strings.Trim(fmt.Sprint(ports), "[]"))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "PRINT_PORTS=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	_, list, _ := strings.Cut(string(out), "ports ")
	list, _, _ = strings.Cut(list, "\n")
	note(list)
}
