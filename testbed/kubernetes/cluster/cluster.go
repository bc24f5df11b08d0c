// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const host = "127.0.0.1"

// Options of a cluster. The zero value is a cluster for a test.
type Options struct {
	// Binaries is the folder of the programs. Empty: bin/kubernetes of the
	// repository that holds the working directory.
	Binaries string
	// Dir is the folder below which the cluster makes one of its own, for
	// data, keys and logs. Empty: the system's temporary folder.
	Dir string
	// KeepDir leaves the cluster's folder behind when it stops.
	KeepDir bool
	// StartTimeout bounds Start. 0: two minutes, which is many times what a
	// start takes on an idle machine.
	StartTimeout time.Duration
	// Unplayed is a label selector of pods that KWOK leaves alone: what becomes
	// of them is for the test to play, as package runner does. Empty: it plays all.
	Unplayed string
}

// Cluster is a running control plane. Its methods may be called concurrently,
// but for those that stop and start.
type Cluster struct {
	keep     bool
	unplayed string
	programs *programs
	users    *kubeconfigs
	ca       *authority
	config   *rest.Config
	client   kubernetes.Interface

	apiServerArgs []string
	schedulerURL  string
}

// Start starts a cluster and returns when pods can be created in it. A start
// that fails stops what it had started; its error ends with what the program
// output that was the cause.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	bin, err := findBinaries(o.Binaries)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "kubernetes")
	if err != nil {
		return nil, err
	}
	c := &Cluster{keep: o.KeepDir, unplayed: o.Unplayed, programs: &programs{bin: bin, dir: dir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	// Of those that no outgoing connection is given: while the API server is gone,
	// no client that tries to reach it can take its port.
	ports, err := collector.Free(4)
	if err != nil {
		return err
	}
	etcd, peer, api, scheduler := strconv.Itoa(ports[0]), strconv.Itoa(ports[1]), strconv.Itoa(ports[2]), strconv.Itoa(ports[3])
	c.schedulerURL = "https://" + net.JoinHostPort(host, scheduler) + "/metrics"
	ca, err := newAuthority(c.Dir())
	if err != nil {
		return err
	}
	c.ca = ca
	access, err := apiServerFiles(c.Dir(), ca)
	if err != nil {
		return err
	}
	accounts, err := ca.serviceAccountKey()
	if err != nil {
		return err
	}
	c.users = &kubeconfigs{dir: c.Dir(), server: "https://" + net.JoinHostPort(host, api), ca: ca}
	admin, err := c.users.writePrograms()
	if err != nil {
		return err
	}
	c.config = admin
	if c.client, err = kubernetes.NewForConfig(admin); err != nil {
		return err
	}

	etcdURL := "http://" + net.JoinHostPort(host, etcd)
	peerURL := "http://" + net.JoinHostPort(host, peer)
	if err := c.programs.start("etcd",
		"--data-dir="+filepath.Join(c.Dir(), "etcd"),
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync", // the data need not survive the machine
		"--log-level=warn",
	); err != nil {
		return err
	}
	c.apiServerArgs = append(access,
		"--etcd-servers="+etcdURL,
		"--bind-address="+host, "--secure-port="+api,
		"--advertise-address="+host, "--endpoint-reconciler-type=none", // loopback is no endpoint
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+accounts, "--service-account-signing-key-file="+accounts,
		"--authorization-mode=Node,RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		"--profiling=false",
	)
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := c.programs.start("kube-controller-manager",
		"--kubeconfig="+c.users.file("kube-controller-manager"),
		"--use-service-account-credentials",
		"--service-account-private-key-file="+accounts, "--root-ca-file="+ca.file(),
		"--leader-elect=false", "--secure-port=0", "--profiling=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--horizontal-pod-autoscaler-sync-period=1s", // tests do in seconds what people do in a day
	); err != nil {
		return err
	}
	if err := c.programs.start("kube-scheduler",
		"--kubeconfig="+c.users.file("kube-scheduler"),
		"--authentication-kubeconfig="+c.users.file("kube-scheduler"), "--authorization-kubeconfig="+c.users.file("kube-scheduler"),
		"--leader-elect=false", "--bind-address="+host, "--secure-port="+scheduler, "--profiling=false",
		"--kube-api-qps=200", "--kube-api-burst=400",
	); err != nil {
		return err
	}
	kwok, err := kwokArgs(c.Dir(), c.users.file("kwok"), c.unplayed)
	if err != nil {
		return err
	}
	if err := c.programs.start("kwok", kwok...); err != nil {
		return err
	}
	return c.waitForServiceAccount(ctx, "default", "default")
}

// Stop ends every program and removes the cluster's folder. It may be called
// more than once.
func (c *Cluster) Stop() error {
	c.programs.stop()
	if c.keep {
		return nil
	}
	return os.RemoveAll(c.Dir())
}

// Dir is the folder of the cluster: <program>.log, <user>.kubeconfig, keys.
func (c *Cluster) Dir() string { return c.programs.dir }

// RESTConfig is a copy of the administrator's access.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// SchedulerURL is kube-scheduler's page of metrics, for accounts that may get /metrics.
// Its certificate is its own.
func (c *Cluster) SchedulerURL() string { return c.schedulerURL }

// Client acts as the administrator.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Run starts a program that uses the cluster, with variables (NAME=value) beside those
// of the control plane's own; it ends with the cluster, and Err reports it where it ends
// before. Its output is in <base name>.log.
func (c *Cluster) Run(path string, env []string, args ...string) error {
	return c.programs.run(path, env, args...)
}

// Certificate writes what a server on loopback needs that others reach under these
// names, to the files that a Secret of a certificate has: ca.crt, tls.crt, tls.key.
func (c *Cluster) Certificate(dir string, names ...string) error {
	cert, key, err := c.ca.server(names...)
	if err != nil {
		return err
	}
	if _, _, err := writePair(dir, "tls", cert, key); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "ca.crt"), c.ca.pem, 0o600)
}

// PIDs are the process ids of the programs that run, by the program's name.
func (c *Cluster) PIDs() map[string]int { return c.programs.pids() }

// Err returns which program has ended that should run, and its last output.
func (c *Cluster) Err() error { return c.programs.ended() }

// Wait calls done until it returns true, ctx ends or a program ends.
func (c *Cluster) Wait(ctx context.Context, what string, done func(context.Context) error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := done(ctx)
		if err == nil {
			return nil
		}
		// The client's error when there is no time left is not what went wrong.
		if last == nil || ctx.Err() == nil && !strings.Contains(err.Error(), "would exceed context deadline") {
			last = err
		}
		if ended := c.Err(); ended != nil {
			return ended
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last: %v", what, ctx.Err(), last)
		case <-ticker.C:
		}
	}
}

// findBinaries returns the folder of the programs.
func findBinaries(dir string) (string, error) {
	if dir == "" {
		at, err := os.Getwd()
		if err != nil {
			return "", err
		}
		for ; ; at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, "scripts", "kubernetes-binaries")); err == nil {
				dir = filepath.Join(at, "bin", "kubernetes")
				break
			}
			if at == filepath.Dir(at) {
				return "", errors.New("cluster: the working directory is in no checkout: set Binaries")
			}
		}
	}
	for _, name := range []string{"etcd", apiServer, "kube-controller-manager", "kube-scheduler", "kwok"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("cluster: %s is missing, run make kubernetes: %w", name, err)
		}
	}
	return dir, nil
}
