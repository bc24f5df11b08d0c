// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package k8sclient configures clients of the Kubernetes API, with the keys that
// users know from the Collector's own Kubernetes components. It bounds the lists
// and watches that they make, and names how requests end.
package k8sclient

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// AuthType is how a client authenticates to the API.
type AuthType string

const (
	// ServiceAccount uses the account of the pod that the process runs in.
	ServiceAccount AuthType = "serviceAccount"
	// KubeConfig uses the files in KUBECONFIG, or ~/.kube/config.
	KubeConfig AuthType = "kubeConfig"
	// None makes no client: nothing is asked of the API.
	None AuthType = "none"
)

const (
	// queries a second, and how many at once. A component that needs more asks
	// the API server for too much.
	qps   = 5
	burst = 10
)

// Config of a client. It is meant to be squashed into a component's own.
type Config struct {
	// AuthType is serviceAccount, kubeConfig or none.
	AuthType AuthType `mapstructure:"auth_type"`

	// Context of the kubeconfig files; "" is their current one. With kubeConfig
	// alone.
	Context string `mapstructure:"context"`
}

// Validate reports problems with their key and remedy.
func (c *Config) Validate() error {
	switch c.AuthType {
	case ServiceAccount, KubeConfig, None:
	default:
		return fmt.Errorf("auth_type: is %q: use %s, %s or %s", c.AuthType, ServiceAccount, KubeConfig, None)
	}
	if c.Context != "" && c.AuthType != KubeConfig {
		return fmt.Errorf("context: is %q, which only auth_type %s uses: set that, or remove context", c.Context, KubeConfig)
	}
	return nil
}

// ErrNotInCluster is what REST returns where there is no service account.
var ErrNotInCluster = errors.New("this is no pod with a service account: run it in the cluster and leave automountServiceAccountToken on, or set auth_type to kubeConfig, or to none to do without the Kubernetes API")

// REST returns the configuration of clients that name themselves userAgent, and
// nil with None. Objects travel as protobuf: a third of the bytes, and less work
// than JSON. Errors name the key and the remedy; no request is made.
func (c *Config) REST(userAgent string) (*rest.Config, error) {
	var cfg *rest.Config
	var err error
	switch c.AuthType {
	case None:
		return nil, nil
	case KubeConfig:
		cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			clientcmd.NewDefaultClientConfigLoadingRules(),
			&clientcmd.ConfigOverrides{CurrentContext: c.Context},
		).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("auth_type: %s: %w: check KUBECONFIG (or ~/.kube/config) and context", KubeConfig, err)
		}
	default:
		cfg, err = rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("auth_type: %s: %w (%w)", ServiceAccount, ErrNotInCluster, err)
		}
	}
	cfg.UserAgent = userAgent
	cfg.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	cfg.ContentType = "application/vnd.kubernetes.protobuf"
	cfg.QPS, cfg.Burst = qps, burst
	cfg.Timeout = 0 // watches are long: callers bound the rest
	return cfg, nil
}
