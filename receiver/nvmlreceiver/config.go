// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmlreceiver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/nvmlproto"
)

// Config of the nvml receiver.
type Config struct {
	// CollectionInterval is the time between two scrapes, 1s to 5m.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// Timeout is how long a scrape waits for boards. One that is late is left out.
	Timeout time.Duration `mapstructure:"timeout"`
	// CallTimeout is after how long a call of the driver's library makes its board stuck.
	CallTimeout time.Duration `mapstructure:"call_timeout"`

	// Library is the path of libnvidia-ml.so.1; empty: it is searched for.
	Library string `mapstructure:"library"`
	// Helper is the path of otelcol-gpu-nvml; empty: beside this program, then in PATH.
	Helper string `mapstructure:"helper"`
	// ReleaseFile is a file that, while it exists, keeps the driver free of this receiver.
	ReleaseFile string `mapstructure:"release_file"`
	// RootPath is where the host's /sys, /proc and /dev are.
	RootPath string `mapstructure:"root_path"`

	// Groups are the groups of readings to read.
	Groups []nvmlproto.Group `mapstructure:"groups"`
	// PCIeThroughput reads the PCIe throughput of boards without GPM, which takes 40 ms each.
	PCIeThroughput bool `mapstructure:"pcie_throughput"`
	// Wake reads boards that are suspended, which wakes them.
	Wake bool `mapstructure:"wake"`

	XID       XIDConfig       `mapstructure:"xid"`
	Processes ProcessesConfig `mapstructure:"processes"`

	// NodeName and ClusterName become k8s.node.name and k8s.cluster.name.
	NodeName    string `mapstructure:"node_name"`
	ClusterName string `mapstructure:"cluster_name"`

	// FrozenAfter is the number of scrapes for which energy and clocks of all boards must
	// stand still until gpu.exporter.frozen is 1.
	FrozenAfter int `mapstructure:"frozen_after"`
}

// XIDConfig is where XIDs are counted from, beside the driver's events.
type XIDConfig struct {
	// KernelLog is auto, on or off.
	KernelLog KernelLog `mapstructure:"kernel_log"`
}

// KernelLog is whether the kernel log is read for XIDs.
type KernelLog string

const (
	// KernelLogAuto reads it where it may be read.
	KernelLogAuto KernelLog = "auto"
	// KernelLogOn reads it, and reports where it may not be read.
	KernelLogOn KernelLog = "on"
	// KernelLogOff leaves it alone.
	KernelLogOff KernelLog = "off"
)

// ProcessesConfig is how processes on boards become series.
type ProcessesConfig struct {
	// By is off, container or process.
	By ProcessesBy `mapstructure:"by"`
	// MaxPerDevice is how many rows a device has; the rest is one row.
	MaxPerDevice int `mapstructure:"max_per_device"`
}

// ProcessesBy is what a row of processes is about.
type ProcessesBy string

const (
	// ProcessesOff reads no processes.
	ProcessesOff ProcessesBy = "off"
	// ProcessesByContainer sums over the processes of a container, pod, job or unit.
	ProcessesByContainer ProcessesBy = "container"
	// ProcessesByProcess has a row for each process.
	ProcessesByProcess ProcessesBy = "process"
)

const (
	minInterval          = time.Second
	maxInterval          = 5 * time.Minute
	minProcessesInterval = 5 * time.Second
	maxProcessRows       = 4096
	defaultTimeout       = 10 * time.Second
	defaultCallTimeout   = 5 * time.Second
)

func createDefaultConfig() component.Config {
	return &Config{
		CollectionInterval: 15 * time.Second,
		Timeout:            defaultTimeout,
		CallTimeout:        defaultCallTimeout,
		RootPath:           "/",
		Groups: slices.DeleteFunc(slices.Clone(nvmlproto.Groups), func(g nvmlproto.Group) bool {
			return g == nvmlproto.GroupProcesses
		}),
		XID:         XIDConfig{KernelLog: KernelLogAuto},
		Processes:   ProcessesConfig{By: ProcessesOff, MaxPerDevice: 256},
		FrozenAfter: 5,
	}
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a duration
// without a unit stop the start. Groups replace the default ones, and the default timeouts
// shrink to a shorter interval.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if conf.IsSet("groups") {
		c.Groups = nil
	}
	if err := configkeys.Unmarshal(conf, c); err != nil {
		return err
	}
	if !conf.IsSet("timeout") {
		c.Timeout = min(defaultTimeout, c.CollectionInterval)
	}
	if !conf.IsSet("call_timeout") {
		c.CallTimeout = min(defaultCallTimeout, c.CollectionInterval)
	}
	return nil
}

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error {
	var errs []error
	if c.CollectionInterval < minInterval || c.CollectionInterval > maxInterval {
		errs = append(errs, fmt.Errorf("collection_interval: is %v: use %v to %v", c.CollectionInterval, minInterval, maxInterval))
	}
	for _, t := range []struct {
		key string
		v   time.Duration
	}{{"timeout", c.Timeout}, {"call_timeout", c.CallTimeout}} {
		if t.v <= 0 || t.v > c.CollectionInterval {
			errs = append(errs, fmt.Errorf("%s: is %v: use more than 0s, and at most collection_interval, %v", t.key, t.v, c.CollectionInterval))
		}
	}
	for _, p := range []struct{ key, path, example string }{
		{"library", c.Library, "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"},
		{"helper", c.Helper, "/usr/bin/otelcol-gpu-nvml"},
		{"release_file", c.ReleaseFile, "/run/otelcol-gpu/release"},
		{"root_path", cmp.Or(c.RootPath, "."), "/ or /hostfs"},
	} {
		if p.path != "" && !filepath.IsAbs(p.path) {
			errs = append(errs, fmt.Errorf("%s: is %q: use an absolute path, such as %s", p.key, strings.TrimPrefix(p.path, "."), p.example))
		}
	}
	errs = append(errs, c.checkGroups()...)
	switch c.XID.KernelLog {
	case KernelLogAuto, KernelLogOn, KernelLogOff:
	default:
		errs = append(errs, fmt.Errorf("xid::kernel_log: is %q: use auto, on or off", c.XID.KernelLog))
	}
	if c.NodeName == "" && inKubernetes() {
		errs = append(errs, errors.New("node_name: is empty, and in Kubernetes the host's name is the pod's: set it from spec.nodeName, such as ${env:K8S_NODE_NAME}"))
	}
	if c.FrozenAfter < 2 {
		errs = append(errs, fmt.Errorf("frozen_after: is %d: use 2 or more scrapes", c.FrozenAfter))
	}
	return errors.Join(errs...)
}

func (c *Config) checkGroups() (errs []error) {
	if len(c.Groups) == 0 {
		errs = append(errs, errors.New("groups: is empty: name groups to read, or remove the key to read all but processes"))
	}
	known := make([]string, 0, len(nvmlproto.Groups))
	for _, g := range nvmlproto.Groups {
		known = append(known, string(g))
	}
	for i, g := range c.Groups {
		switch {
		case !slices.Contains(known, string(g)):
			use := "use " + strings.Join(known, ", ")
			if near := configkeys.Nearest(string(g), known); near != "" {
				use = "did you mean " + near + "?"
			}
			errs = append(errs, fmt.Errorf("groups::%d: is %q: %s", i, g, use))
		case slices.Contains(c.Groups[:i], g):
			errs = append(errs, fmt.Errorf("groups::%d: repeats %s: remove it", i, g))
		}
	}
	asked := slices.Contains(c.Groups, nvmlproto.GroupProcesses)
	switch c.Processes.By {
	case ProcessesOff:
		if asked {
			errs = append(errs, errors.New("processes::by: is off, with processes in groups: set it to container or process, or remove processes from groups"))
		}
	case ProcessesByContainer, ProcessesByProcess:
		if !asked {
			errs = append(errs, fmt.Errorf("processes::by: is %s, without processes in groups: add it there, or set processes::by to off", c.Processes.By))
		} else if c.CollectionInterval < minProcessesInterval {
			errs = append(errs, fmt.Errorf("processes::by: is %s with a collection_interval of %v: lists of processes hold up the driver: use %v or more, or set processes::by to off", c.Processes.By, c.CollectionInterval, minProcessesInterval))
		}
	default:
		errs = append(errs, fmt.Errorf("processes::by: is %q: use off, container or process", c.Processes.By))
	}
	if n := c.Processes.MaxPerDevice; n < 1 || n > maxProcessRows {
		errs = append(errs, fmt.Errorf("processes::max_per_device: is %d: use 1 to %d", n, maxProcessRows))
	}
	return errs
}

// inKubernetes reports whether this process is in a pod.
func inKubernetes() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }
