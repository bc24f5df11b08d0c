// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package intelgpureceiver

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/deviceid"
	"github.com/otelcol-gpu/otelcol-gpu/internal/scrape"
)

// Config of the intel_gpu receiver.
type Config struct {
	scrape.Config `mapstructure:",squash"`
}

func createDefaultConfig() component.Config {
	return &Config{scrape.Defaults(15*time.Second, 5*time.Second)}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a
// duration without a unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error {
	return errors.Join(c.Check(&exporter), c.checkHosts(), c.checkNode())
}

// checkHosts refuses exporters of several hosts: hw.id is made of one node's name and the
// GPU's PCI address, which is the same on many hosts.
func (c *Config) checkHosts() error {
	first := ""
	for i, endpoint := range c.Endpoints {
		host := hostOf(endpoint)
		switch {
		case host == "": // Check has refused it
		case first == "":
			first = host
		case host != first:
			return fmt.Errorf("endpoints::%d: is on another host than the first: a GPU is identified by its node and PCI address, so use a receiver for each host (%[2]s/a, %[2]s/b), with node_name", i, exporter.Type)
		}
	}
	return nil
}

// checkNode refuses a name that cannot be a part of hw.id.
func (c *Config) checkNode() error {
	fits := func(node string) bool { return node == "" || deviceid.Intel(node, "0000:00:00.0") != "" }
	switch node := c.node(); {
	case !fits(node):
		return fmt.Errorf("node_name: is %q, which cannot be a part of hw.id: use the node's name, without blanks, \"/\", \":\" and \"@\"", node)
	case node == "" && !fits(c.host()):
		return errors.New("node_name: is empty, and the exporter's host cannot be a part of hw.id: set it to the name of the exporter's node")
	}
	return nil
}

// node is the configured name of the exporter's node.
func (c *Config) node() string {
	if c.Kubernetes != nil {
		return c.Kubernetes.NodeName
	}
	return c.NodeName
}

// host stands for the node where nothing names it: the exporter's host, or this host's
// name for an exporter on it.
func (c *Config) host() string {
	if len(c.Endpoints) == 0 {
		return ""
	}
	host := hostOf(c.Endpoints[0])
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		if name, err := os.Hostname(); err == nil {
			return name
		}
	}
	return host
}

func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
