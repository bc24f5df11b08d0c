// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
)

// kustomization is Kueue's own in config/default, without what runs in a pod.
const kustomization = `
namespace: kueue-system
namePrefix: kueue-
resources: [%s/crd, %[1]s/rbac, %[1]s/internalcert, %[1]s/webhook]
configurations: [names.yaml]
patches:
- patch: |-
    apiVersion: v1
    kind: Service
    metadata: {name: webhook-service, namespace: system}
    spec: {type: ExternalName, externalName: localhost}
`

// configuration of the manager. It makes the certificate of its webhooks itself.
const configuration = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: "%[1]s:%[2]d"}
metrics: {bindAddress: "%[1]s:%[3]d", enableClusterQueueResources: true}
webhook: {host: "%[1]s", port: %[4]d, certDir: %[5]s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: kueue-webhook-service, webhookSecretName: kueue-webhook-server-cert}
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job, pod]}
`

// queues of two teams that may borrow of each other, over the nodes' GPUs.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 4}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: research, namespace: batch}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: product}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 4}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: product, namespace: batch}
spec: {clusterQueue: product}
`

// startKueue starts Kueue's manager with its own definitions, rights and webhooks, and
// returns the address of its page when the queues take jobs.
func (w *world) startKueue() string {
	w.t.Helper()
	kueue, err := filepath.Abs(filepath.Join(root, "bin", "kueue"))
	require.NoError(w.t, err)
	require.FileExists(w.t, filepath.Join(kueue, "stamp"), "run make kueue")
	ctx, dir := w.t.Context(), w.t.TempDir()
	ports, err := collector.Free(3)
	require.NoError(w.t, err)
	write := func(name, format string, args ...any) string {
		path := filepath.Join(dir, name)
		require.NoError(w.t, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600))
		return path
	}
	components, err := filepath.Rel(dir, filepath.Join(kueue, "config", "components"))
	require.NoError(w.t, err)
	names, err := os.ReadFile(filepath.Join(kueue, "config", "default", "webhook_name_reference.yaml"))
	require.NoError(w.t, err)
	write("names.yaml", "%s", names)
	write("kustomization.yaml", kustomization, components)
	require.NoError(w.t, w.CreateNamespace(ctx, kueueNamespace))
	require.NoError(w.t, w.CreateNamespace(ctx, "batch"))
	w.kubectl(served(w, w.kubectl("", "kustomize", dir), ports[2]), "apply", "--server-side", "-f", "-")

	kubeconfig, err := w.Kubeconfig(ctx, kueueNamespace, "kueue-controller-manager")
	require.NoError(w.t, err)
	certs := filepath.Join(dir, "certs")
	require.NoError(w.t, os.Mkdir(certs, 0o700))
	config := write("config.yaml", configuration, collector.Loopback, ports[0], ports[1], ports[2], certs)
	require.NoError(w.t, w.Run(filepath.Join(kueue, "kueue"), nil, "--config="+config, "--kubeconfig="+kubeconfig, "--zap-log-level=2"))
	w.logged = append(w.logged, filepath.Join(w.Dir(), "kueue.log"))
	w.mount(certs)
	w.eventually("Kueue's queues", func(context.Context) error { return w.try(queues, "apply", "--server-side", "-f", "-") })
	return collector.Address(ports[1])
}

// mount writes the Secret that Kueue keeps its certificates in where it looks for them, as
// a kubelet does.
func (w *world) mount(certs string) {
	w.t.Helper()
	w.eventually("Kueue's certificates", func(ctx context.Context) error {
		secret, err := w.Client().CoreV1().Secrets(kueueNamespace).Get(ctx, "kueue-webhook-server-cert", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 {
			return errors.New("not yet")
		}
		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(certs, name), data, 0o600); err != nil {
				return err
			}
		}
		return nil
	})
}

// served is a manifest in which the API server reaches Kueue's webhooks at a port of
// loopback: a Service has none in a control plane without a network of pods.
func served(w *world, manifest string, port int) string {
	w.t.Helper()
	var out bytes.Buffer
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifest)), 4096); ; {
		var object m
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		require.NoError(w.t, err)
		setPort(object, port)
		text, err := json.Marshal(object)
		require.NoError(w.t, err)
		fmt.Fprintf(&out, "---\n%s\n", text)
	}
}

func setPort(v any, port int) {
	switch x := v.(type) {
	case m:
		if service, ok := x["service"].(m); ok && service["name"] == kueueService {
			service["port"] = port
		}
		for _, inner := range x {
			setPort(inner, port)
		}
	case []any:
		for _, inner := range x {
			setPort(inner, port)
		}
	}
}

// pods of a namespace.
func (w *world) pods(namespace string) []corev1.Pod {
	w.t.Helper()
	list, err := w.Client().CoreV1().Pods(namespace).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	return list.Items
}
