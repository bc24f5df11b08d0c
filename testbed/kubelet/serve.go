// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// served is one run of the server.
type served struct {
	socket string
	server *grpc.Server
	done   chan struct{}
	stop   chan struct{} // closed when it ends
}

// Serve serves the pod-resources API on a unix socket, which it makes again in
// place of what is there; the folder must exist. On a kubelet that serves it is
// a restart: clients lose their connections, what was given away stays given,
// and so do devices, until a plugin announces others.
func (k *Kubelet) Serve(socket string) error {
	k.serving.Lock()
	defer k.serving.Unlock()
	k.end(true)
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the old socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	// Whether the file is removed is up to Stop and Kill.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	s := &served{socket: socket, done: make(chan struct{}), stop: make(chan struct{})}
	s.server = grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := k.gate.before(ctx, path.Base(info.FullMethod), s.stop); err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}))
	podresources.RegisterPodResourcesListerServer(s.server, &lister{kubelet: k})
	k.served = s
	go func() {
		defer close(s.done)
		_ = s.server.Serve(&gated{Listener: listener, gate: &k.gate, stop: s.stop}) // ends with Stop
	}()
	return nil
}

// Stop ends serving and removes the socket.
func (k *Kubelet) Stop() {
	k.serving.Lock()
	defer k.serving.Unlock()
	k.end(true)
}

// Kill ends serving and leaves the socket behind, as a kubelet does that was
// killed: connections are refused.
func (k *Kubelet) Kill() {
	k.serving.Lock()
	defer k.serving.Unlock()
	k.end(false)
}

// SetSocketMode changes who may connect; 0: only root, who always may.
// A restart puts it back.
func (k *Kubelet) SetSocketMode(mode os.FileMode) error {
	k.serving.Lock()
	defer k.serving.Unlock()
	if k.served == nil {
		return fmt.Errorf("the kubelet does not serve")
	}
	return os.Chmod(k.served.socket, mode)
}

func (k *Kubelet) end(remove bool) {
	if k.served == nil {
		return
	}
	close(k.served.stop)
	k.served.server.Stop()
	<-k.served.done
	if remove {
		_ = os.Remove(k.served.socket)
	}
	k.served = nil
}

// lister answers the calls.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer
	kubelet *Kubelet
}

func (l *lister) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	if faults, _ := l.kubelet.gate.current(); faults.NoPods {
		return &podresources.ListPodResourcesResponse{}, nil
	}
	return l.kubelet.list(), nil
}

func (l *lister) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	return l.kubelet.allocatable(), nil
}

// Get fails with an error of no particular code, as the kubelet's.
func (l *lister) Get(_ context.Context, r *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	if l.kubelet.noGet {
		return nil, status.Error(codes.Unknown, "the call Get of the pod-resources API is switched off")
	}
	found := l.kubelet.get(r.GetPodNamespace(), r.GetPodName())
	if found == nil {
		return nil, status.Errorf(codes.Unknown, "pod %s in namespace %s is not found", r.GetPodName(), r.GetPodNamespace())
	}
	return &podresources.GetPodResourcesResponse{PodResources: found}, nil
}
