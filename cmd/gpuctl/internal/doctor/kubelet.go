// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const usualSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// allocationConfig is what is read of the configuration of gpu_allocation.
type allocationConfig struct {
	Socket   string `mapstructure:"socket"`
	Optional bool   `mapstructure:"optional"`
}

func readAllocation(c component) (allocationConfig, error) {
	cfg := allocationConfig{Socket: usualSocket}
	err := c.read(&cfg)
	return cfg, err
}

// allocations are the receivers that ask a kubelet: not those that do without, because
// there is none on this machine.
func (in *installation) allocations() []component {
	return slices.DeleteFunc(in.of("receivers", "gpu_allocation"), func(c component) bool {
		cfg, err := readAllocation(c)
		if err != nil || !cfg.Optional {
			return false
		}
		_, err = os.Stat(cfg.Socket)
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	})
}

func (in *installation) checkKubelet(ctx context.Context) []Result {
	receivers := in.allocations()
	switch {
	case len(in.of("receivers", "gpu_allocation")) == 0:
		return []Result{{"kubelet", "", Skipped, "the configuration has no gpu_allocation receiver: nothing asks the kubelet", ""}}
	case len(receivers) == 0:
		return []Result{{"kubelet", "", Skipped, "this machine has no kubelet, and gpu_allocation does without (optional)", ""}}
	}
	cfg, err := readAllocation(receivers[0])
	if err != nil {
		return []Result{{"kubelet", "", Fail, err.Error(), "otelcol-gpu validate with the same --config says why"}}
	}
	r := Result{Check: "kubelet", Subject: cfg.Socket, Status: Fail}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", cfg.Socket)
	if err != nil {
		r.Seen, r.Remedy = unreadable(cfg.Socket, err)
		return []Result{r}
	}
	_ = conn.Close()
	transport := grpcTransport(nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", cfg.Socket)
	})
	defer transport.CloseIdleConnections()
	r.Status, r.Seen = OK, "readable by "+whoWeAre()
	return []Result{r, askKubelet(ctx, transport, methodList), askKubelet(ctx, transport, methodAllocatable)}
}

// whoWeAre is the user that the socket has to let in.
func whoWeAre() string {
	if id := os.Getuid(); id >= 0 {
		return fmt.Sprintf("user %d", id)
	}
	return "this user"
}

// unreadable says why a socket cannot be used, and what to do.
func unreadable(socket string, err error) (seen, remedy string) {
	const mount = "mount the kubelet's folder into the pod (hostPath /var/lib/kubelet/pod-resources, the folder and not the socket), and check gpu_allocation::socket"
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return "there is no such socket", mount
	case errors.Is(err, fs.ErrPermission):
		seen = whoWeAre() + " may not use it"
		if info, err := os.Stat(filepath.Dir(socket)); err == nil {
			seen += fmt.Sprintf(": its folder is %v", info.Mode())
		}
		return seen, "the folder is the kubelet's, 0750 of root: run the container as user 0 (runAsUser: 0, all capabilities dropped); on OpenShift with an SCC that allows it; then look at SELinux or AppArmor"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it is there, and nobody answers", "the kubelet restarts, or the socket was mounted as a file: mount the folder"
	default:
		return why(err), mount
	}
}

// askKubelet makes one of the two calls.
func askKubelet(ctx context.Context, transport *http.Transport, method string) Result {
	name := method[strings.LastIndexByte(method, '/')+1:]
	r := Result{Check: "kubelet", Subject: name, Status: OK}
	message, err := call(ctx, transport, url.URL{Scheme: "http", Host: "localhost"}, method, nil)
	if err == nil {
		if method == methodList {
			var pods, devices int
			pods, devices, err = countPods(message)
			r.Seen = fmt.Sprintf("%d pods, which hold %d devices of device plugins", pods, devices)
		} else {
			var devices int
			devices, err = countAllocatable(message)
			r.Seen = fmt.Sprintf("%d devices of device plugins", devices)
			if err == nil && devices == 0 {
				r.Remedy = "if the node's GPUs are given out by a device plugin, look at its log: it has not registered; with DRA this is as it should be"
			}
		}
	}
	if err == nil {
		return r
	}
	r.Status, r.Seen = Fail, why(err)
	var refused *grpcError
	switch errors.As(err, &refused); {
	case refused == nil:
		r.Remedy = "look at the kubelet's log"
	case refused.code == grpcUnimplemented:
		r.Remedy = fmt.Sprintf("the kubelet does not serve this call of pod-resources v1: use Kubernetes 1.%d or newer", oldestMinor)
	case refused.code == grpcUnknown && strings.Contains(refused.message, "disabled"):
		r.Remedy = "switch the kubelet's feature gate on (KubeletPodResourcesGetAllocatable; always on from 1.28): without it no device is called free"
	case refused.code == grpcExhausted:
		r.Remedy = "the kubelet limits calls for all its clients together: raise gpu_allocation::poll_interval, or look for who asks so often"
	default:
		r.Remedy = "look at the kubelet's log"
	}
	return r
}
