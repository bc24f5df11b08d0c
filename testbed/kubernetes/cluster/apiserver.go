// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const apiServer = "kube-apiserver"

// StartAPIServer starts the API server, at the port and with the data that it
// had, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.apiServer() != nil {
		return errors.New("the API server runs")
	}
	if err := c.run(apiServer, c.apiServerArgs...); err != nil {
		return err
	}
	return c.Wait(ctx, "the API server", func(ctx context.Context) error {
		_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// StopAPIServer ends the API server alone, as a crash does: clients are refused
// until StartAPIServer. The other programs go on and keep trying. Asked to end, it
// would wait for the watches of its clients until it is killed.
func (c *Cluster) StopAPIServer() error {
	p := c.apiServer()
	if p == nil {
		return errors.New("the API server does not run")
	}
	c.mu.Lock()
	c.processes = slices.DeleteFunc(c.processes, func(o *process) bool { return o == p })
	c.mu.Unlock()
	p.kill()
	return nil
}

func (c *Cluster) apiServer() *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.name == apiServer {
			return p
		}
	}
	return nil
}

// waitForServiceAccount waits for the account, without which no pod is
// admitted; the controller manager creates it in every namespace.
func (c *Cluster) waitForServiceAccount(ctx context.Context, namespace, name string) error {
	return c.Wait(ctx, "service account "+namespace+"/"+name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}
