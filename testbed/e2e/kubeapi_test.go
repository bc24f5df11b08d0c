// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/podapi"
)

// pods is as much of a Kubernetes API server as an agent needs: the pods of one
// node.
type pods struct {
	node string
	list []string // their names
	api  podapi.API
}

// pod adds a running pod.
func (p *pods) pod(namespace, name string, metadata m, ip string) {
	p.api.Node = p.node
	p.list = append(p.list, name)
	p.api.Add(namespace, name, metadata, ip)
}

func (p *pods) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.api.ServeHTTP(w, r) }

// kubeconfig serves the pods and returns a file for KUBECONFIG.
func (p *pods) kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, serve(t, p))
}

// kubeconfigOf is a file for KUBECONFIG that leads to url.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, podapi.Kubeconfig(path, url))
	return path
}
