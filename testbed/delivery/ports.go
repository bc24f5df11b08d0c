// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// Ports below the range from which the system takes the near ends of
// connections, so that nothing sits on a port while who listens there is away.
const lowestPort = 10_000

// freePorts finds n such ports on which nothing listens now.
func freePorts(n int) ([]int, error) {
	highest := 32_768 // where Linux begins by default; other systems begin higher
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &highest)
	}
	if highest < lowestPort+1000 {
		return nil, fmt.Errorf("the system takes the ports of connections from %d on, which leaves none to listen on", highest)
	}
	var ports []int
	for tries := 0; len(ports) < n && tries < 100*n; tries++ {
		port := lowestPort + rand.IntN(highest-lowestPort)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are found, so that none is found twice
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("found only %d of %d free ports", len(ports), n)
	}
	return ports, nil
}
