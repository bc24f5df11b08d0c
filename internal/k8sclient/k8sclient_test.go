// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package k8sclient

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	for _, good := range []Config{{ServiceAccount, ""}, {KubeConfig, ""}, {KubeConfig, "staging"}, {None, ""}} {
		assert.NoError(t, good.Validate(), "%+v", good)
	}
	for key, bad := range map[string]Config{
		"auth_type: is \"\"":        {},
		"auth_type: is \"tls\"":     {AuthType: "tls"},
		"context: is \"staging\", ": {ServiceAccount, "staging"},
		"context: is \"prod\", ":    {None, "prod"},
	} {
		assert.ErrorContains(t, bad.Validate(), key)
	}
}

func TestNone(t *testing.T) {
	cfg, err := (&Config{AuthType: None}).REST("test")
	require.NoError(t, err)
	assert.Nil(t, cfg)
}

func TestServiceAccount(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := (&Config{AuthType: ServiceAccount}).REST("test")
	require.ErrorIs(t, err, ErrNotInCluster)
	assert.ErrorContains(t, err, "auth_type: serviceAccount: ")
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: one, user: me}}
- {name: two, context: {cluster: two, user: me}}
clusters:
- {name: one, cluster: {server: "http://127.0.0.1:1"}}
- {name: two, cluster: {server: "http://127.0.0.1:2"}}
users: [{name: me, user: {token: top-secret}}]
`

func TestKubeConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	t.Setenv("KUBECONFIG", file)

	for context, host := range map[string]string{"": "http://127.0.0.1:1", "two": "http://127.0.0.1:2"} {
		cfg, err := (&Config{KubeConfig, context}).REST("otelcol-gpu/1 gpu_allocation")
		require.NoError(t, err)
		assert.Equal(t, host, cfg.Host)
		assert.Equal(t, "otelcol-gpu/1 gpu_allocation", cfg.UserAgent)
		assert.Equal(t, "application/vnd.kubernetes.protobuf", cfg.ContentType)
		assert.Zero(t, cfg.Timeout)
	}

	_, err := (&Config{KubeConfig, "three"}).REST("test")
	require.Error(t, err)
	assert.Contains(t, err.Error(), "auth_type: kubeConfig: ")
	assert.NotContains(t, err.Error(), "top-secret")

	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	_, err = (&Config{AuthType: KubeConfig}).REST("test")
	assert.ErrorContains(t, err, "check KUBECONFIG")
}
