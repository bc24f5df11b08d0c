// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet is the probe of the pod-resources API of the kubelet.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/rpc"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
)

// Probe connects to the kubelet and makes the two calls that gpu_allocation makes.
func Probe(ctx context.Context, env probe.Env) []probe.Result {
	receivers := env.Config.Allocations()
	switch {
	case len(env.Config.Of("receivers", "gpu_allocation")) == 0:
		return []probe.Result{probe.New("", probe.Skipped, "the configuration has no gpu_allocation receiver: nothing asks the kubelet", "")}
	case len(receivers) == 0:
		return []probe.Result{probe.New("", probe.Skipped, "this machine has no kubelet, and gpu_allocation does without (optional)", "")}
	}
	cfg, err := config.ReadAllocation(receivers[0])
	if err != nil {
		return []probe.Result{probe.Invalid("", err)}
	}
	r := probe.Result{Subject: cfg.Socket, Status: probe.Fail}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", cfg.Socket)
	if err != nil {
		r.Seen, r.Remedy = unreadable(cfg.Socket, err)
		return []probe.Result{r}
	}
	_ = conn.Close()
	r.Status, r.Seen = probe.OK, "readable by "+probe.User()
	return append([]probe.Result{r}, calls(ctx, cfg.Socket)...)
}

// unreadable is why a socket cannot be used, and what to do.
func unreadable(socket string, err error) (seen, remedy string) {
	const mount = "mount the kubelet's folder into the pod (hostPath /var/lib/kubelet/pod-resources, the folder and not the socket), and check gpu_allocation::socket"
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "there is no such socket", mount
	case errors.Is(err, fs.ErrPermission):
		seen = probe.User() + " may not use it"
		if info, err := os.Stat(filepath.Dir(socket)); err == nil {
			seen += fmt.Sprintf(": its folder is %v", info.Mode())
		}
		return seen, "the folder is the kubelet's, 0750 of root: run the container as user 0 (runAsUser: 0, all capabilities dropped); on OpenShift with an SCC that allows it; then look at SELinux or AppArmor"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it is there, and nothing answers", "the kubelet restarts, or the socket was mounted as a file: mount the folder"
	default:
		return web.Why(err), mount
	}
}

// calls makes the two calls.
func calls(ctx context.Context, socket string) []probe.Result {
	list, allocatable := probe.New("List", probe.OK, "", ""), probe.New("GetAllocatableResources", probe.OK, "", "")
	conn, err := rpc.Connect(ctx, "unix", socket, nil)
	if err != nil {
		return []probe.Result{failed(list, err), failed(allocatable, err)}
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	if pods, err := client.List(ctx, &podresources.ListPodResourcesRequest{}); err != nil {
		list = failed(list, err)
	} else {
		devices := 0
		for _, pod := range pods.GetPodResources() {
			for _, container := range pod.GetContainers() {
				devices += count(container.GetDevices())
			}
		}
		list.Seen = fmt.Sprintf("%d pods, which hold %d devices of device plugins", len(pods.GetPodResources()), devices)
	}
	if resources, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{}); err != nil {
		allocatable = failed(allocatable, err)
	} else {
		devices := count(resources.GetDevices())
		allocatable.Seen = fmt.Sprintf("%d devices of device plugins", devices)
		if devices == 0 {
			allocatable.Remedy = "if the node's GPUs are given out by a device plugin, look at its log: it has not registered; with DRA this is as it should be"
		}
	}
	return []probe.Result{list, allocatable}
}

func count(all []*podresources.ContainerDevices) int {
	n := 0
	for _, devices := range all {
		n += len(devices.GetDeviceIds())
	}
	return n
}

// failed is the result of a call that failed.
func failed(r probe.Result, err error) probe.Result {
	r.Status, r.Seen = probe.Fail, rpc.Why(err)
	switch code := rpc.Code(err); {
	case code == codes.Unimplemented:
		r.Remedy = fmt.Sprintf("the kubelet does not serve this call of pod-resources v1: use Kubernetes 1.%d or newer", kube.OldestMinor)
	case code == codes.Unknown && strings.Contains(r.Seen, "disabled"):
		r.Remedy = "switch the kubelet's feature gate on (KubeletPodResourcesGetAllocatable; always on from 1.28): without it no device is called free"
	case code == codes.ResourceExhausted:
		r.Remedy = "the kubelet limits calls for all its clients together: raise gpu_allocation::poll_interval, or look for who asks so often"
	default:
		r.Remedy = "look at the kubelet's log"
	}
	return r
}
