// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package slurmallocationreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/configkeys"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

// Values of the keys.
const (
	FormatOwn      = "otelcol-gpu" // docs/examples/slurm: one JSON a job
	FormatDCGM     = "dcgm"        // dcgm-exporter's --hpc-job-mapping-dir
	FormatCEEMS    = "ceems"       // /run/gpujobmap
	FormatJobstats = "jobstats"    // /run/gpustat
	FormatAMD      = "amd"         // /var/run/exporter

	OrderPCI   = "pci"
	OrderMinor = "minor"

	VerifyNone   = "none"
	VerifyCgroup = "cgroup"

	InsideNone       = "none"
	InsideKubernetes = "kubernetes"

	IdentityJob     = "job"
	IdentityAccount = "account"

	ServiceUserJob       = "user_job"       // <user>/<job name>
	ServiceJob           = "job"            // <job id>
	ServiceUserPartition = "user_partition" // <user>/<partition>
	ServicePartition     = "partition"      // <partition>
)

const (
	minInterval           = time.Second
	maxPollInterval       = time.Minute
	maxCollectionInterval = 5 * time.Minute
	maxStaleAfter         = time.Hour
	maxNameWait           = 10 * time.Minute
	maxFiles              = 65536
	minFileSize           = 1 << 10
	maxFileSize           = 1 << 20
	maxName               = 253 // bytes of a name of a cluster or node
)

// Config of the slurm_allocation receiver. Every key has a default; formats that do not name the
// cluster require ClusterName.
type Config struct {
	// Directory is the folder in which there is a file for each job, or for each GPU.
	// It decides identity: root owns it, and no other user may write to it or above it.
	Directory string `mapstructure:"directory"`

	// Format is how the files are named and written.
	Format string `mapstructure:"format"`

	// Watch has the kernel report changes of the folder (inotify). Without it, and where the
	// kernel cannot, changes are seen with the next poll.
	Watch bool `mapstructure:"watch"`

	// PollInterval is the time between two readings of the folder, 1s to 1m.
	PollInterval time.Duration `mapstructure:"poll_interval"`

	// CollectionInterval is the time between two emissions without a change, 1s to 5m.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`

	// IndexOrder is what Slurm's indices count where the boards' PCI addresses and the minors of
	// their device files are in different orders: pci or minor. Empty: those indices are not
	// resolved.
	IndexOrder string `mapstructure:"index_order"`

	// AllDevices is whether every GPU of the node is Slurm's to give: one without a job is
	// free then. Otherwise nothing is known of it.
	AllDevices bool `mapstructure:"all_devices"`

	// Verify is none or cgroup: a job without a control group for StaleAfter is over.
	Verify     string        `mapstructure:"verify"`
	StaleAfter time.Duration `mapstructure:"stale_after"`

	// Inside is kubernetes where slurmd runs in a pod, which has the job's GPUs too.
	Inside string `mapstructure:"inside"`

	// Identity is job, or account, which leaves the user out of all telemetry.
	Identity string `mapstructure:"identity"`

	// Service is what service.name is made of. Empty: user_job; with identity account,
	// partition.
	Service string `mapstructure:"service"`

	// NameWait is how long after the start of a job its name is waited for.
	NameWait time.Duration `mapstructure:"name_wait"`

	// NodeName becomes k8s.node.name. Empty: the machine's name.
	NodeName string `mapstructure:"node_name"`

	// ClusterName is slurm.cluster.name where the files do not have it.
	ClusterName string `mapstructure:"cluster_name"`

	// K8sClusterName becomes k8s.cluster.name where it is set: the same as the cluster_name of
	// the receivers of the node's GPUs.
	K8sClusterName string `mapstructure:"k8s_cluster_name"`

	// MaxFiles and MaxFileSize, in bytes, bound what is read of the folder.
	MaxFiles    int `mapstructure:"max_files"`
	MaxFileSize int `mapstructure:"max_file_size"`

	// RootPath is where the node's /proc and /sys are.
	RootPath string `mapstructure:"root_path"`
}

// Unmarshal implements confmap.Unmarshaler. A key that does not exist and a duration without a
// unit stop the start.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return configkeys.Unmarshal(conf, c) }

// Validate reports every problem with its key and remedy.
func (c *Config) Validate() error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(key, value string, values ...string) {
		if !slices.Contains(values, value) {
			refuse("%s: is %q: use %s", key, value, strings.Join(values, ", "))
		}
	}
	within := func(key string, value, least, most time.Duration) {
		if value < least || value > most {
			refuse("%s: is %v: use %v to %v", key, value, least, most)
		}
	}
	between := func(key string, value, least, most int) {
		if value < least || value > most {
			refuse("%s: is %d: use %d to %d", key, value, least, most)
		}
	}
	absolute := func(key, path, example string) {
		if !filepath.IsAbs(path) {
			refuse("%s: %q is no absolute path: write one such as %s", key, path, example)
		}
	}
	named := func(key, name string) {
		if len(name) > maxName || safetext.Strip(name, maxName) != name || strings.ContainsAny(name, "/ ") {
			refuse("%s: %q is no name: use at most %d printable characters without spaces and slashes", key, name, maxName)
		}
	}
	absolute("directory", c.Directory, "/run/otelcol-gpu-jobs")
	absolute("root_path", c.RootPath, "/")
	oneOf("format", c.Format, FormatOwn, FormatDCGM, FormatCEEMS, FormatJobstats, FormatAMD)
	if c.IndexOrder != "" {
		oneOf("index_order", c.IndexOrder, OrderPCI, OrderMinor)
	}
	oneOf("verify", c.Verify, VerifyNone, VerifyCgroup)
	oneOf("inside", c.Inside, InsideNone, InsideKubernetes)
	oneOf("identity", c.Identity, IdentityJob, IdentityAccount)
	c.validateService(refuse)
	within("poll_interval", c.PollInterval, minInterval, maxPollInterval)
	within("collection_interval", c.CollectionInterval, minInterval, maxCollectionInterval)
	within("stale_after", c.StaleAfter, c.PollInterval, maxStaleAfter)
	within("name_wait", c.NameWait, 0, maxNameWait)
	between("max_files", c.MaxFiles, 1, maxFiles)
	between("max_file_size", c.MaxFileSize, minFileSize, maxFileSize)
	named("node_name", c.NodeName)
	named("cluster_name", c.ClusterName)
	named("k8s_cluster_name", c.K8sClusterName)
	if c.ClusterName == "" && c.Format != FormatOwn && c.Format != FormatAMD {
		refuse("cluster_name: is empty, and files of format %s do not name the cluster: set it to ClusterName of slurm.conf", c.Format)
	}
	return errors.Join(errs...)
}

func (c *Config) validateService(refuse func(format string, args ...any)) {
	switch c.Service {
	case "", ServiceJob, ServicePartition:
	case ServiceUserJob, ServiceUserPartition:
		if c.Identity == IdentityAccount {
			refuse("service: %s has the user in it, which identity: account leaves out: use %s or %s", c.Service, ServicePartition, ServiceJob)
		}
	default:
		refuse("service: is %q: use %s, %s, %s or %s", c.Service, ServiceUserJob, ServiceJob, ServiceUserPartition, ServicePartition)
	}
}
