// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// patience bounds every wait.
const patience = 3 * time.Minute

// api applies objects of any kind.
type api struct {
	*cluster.Cluster
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

func newAPI(t *testing.T, c *cluster.Cluster) *api {
	t.Helper()
	config := c.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // kinds that are deprecated are listed too
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return &api{Cluster: c, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client().Discovery()))}
}

// startCluster is a control plane with the CRDs of others.
func startCluster(t *testing.T, o cluster.Options) *api {
	t.Helper()
	o.Dir = t.TempDir()
	c, err := cluster.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	return newAPI(t, c)
}

// resource is where objects of a kind are.
func (a *api) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) { // discovered before it was there
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.client.Resource(mapping.Resource), nil
	}
	return a.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// apply creates or changes an object on the server's side. A field that its type
// does not have is an error.
func (a *api) apply(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := a.resource(o)
	if err != nil {
		return err
	}
	text, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, o.GetName(), "application/apply-patch+yaml", text,
		metav1.PatchOptions{FieldManager: "chart-test", Force: new(true), FieldValidation: metav1.FieldValidationStrict})
	return err
}

func (a *api) delete(ctx context.Context, o *unstructured.Unstructured) error {
	resource, err := a.resource(o)
	if err != nil {
		return err
	}
	err = resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// TestControlPlane is what a real API server, real controllers and the real
// binary have for every rendering.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	installForeign(t, w.api)
	// The API server takes no pod of a class that it does not have.
	require.NoError(t, w.apply(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": map[string]any{"name": "nvidia"}, "handler": "nvidia",
	}}))
	for _, name := range []string{"inference", "training"} {
		require.NoError(t, w.CreateNamespace(t.Context(), name)) // values name them
	}
	w.addNode("gpu")
	require.NoError(t, w.AddNode(t.Context(), cluster.NodeSpec{Name: "cpu", Labels: map[string]string{"pool": "cpu"}}))
	for i, d := range drawings {
		t.Run("apply/"+d.name, func(t *testing.T) { w.applied(t, d, fmt.Sprintf("case-%d", i)) })
	}
	t.Run("pod security", func(t *testing.T) { podSecurity(t, w.api) })
	t.Run("obstacles", w.obstacles)
}

// workloadKinds are the kinds of objects with pods.
var workloadKinds = []string{"DaemonSet", "StatefulSet", "Deployment"}

// applied is that the API server takes every object, that pods are scheduled with
// all that they mount, and that the binary takes their configurations. The CRDs
// of others have no schema here: what the chart writes into objects of
// Prometheus' operator is held to the operator's own types in testbed/operator.
func (w *world) applied(t *testing.T, d drawing, namespace string) {
	w.t = t
	require.NoError(t, w.CreateNamespace(t.Context(), namespace))
	w.secrets(namespace)
	w.accounts(namespace)
	w.validate = func(*corev1.Pod) bool { return !d.started }
	text, err := newHelm(t, "helm4", w.AdminKubeconfig()).template(t, d.values, append(d.apiArgs(), "--namespace", namespace)...)
	require.NoError(t, err)
	objects := decode(t, text)
	for _, o := range objects {
		// Helm sends an object without a namespace to that of the release.
		if o.GetNamespace() == "" {
			o.SetNamespace(namespace)
		}
		assert.NoError(t, w.apply(t.Context(), o), "%s %s", o.GetKind(), o.GetName())
		if o.GetKind() == "Certificate" { // cert-manager is not here
			w.issue(namespace, o)
		}
	}
	for _, o := range objects {
		if slices.Contains(workloadKinds, o.GetKind()) {
			var failed error
			w.eventually(o.GetKind()+" "+o.GetName(), func(ctx context.Context) error {
				err := w.works(ctx, o, d.started)
				if errors.As(err, &crash{}) { // nothing to wait for
					failed, err = err, nil
				}
				return err
			})
			assert.NoError(t, failed)
		}
	}
	// The workloads before the rest: a collector that is still stopping without its
	// rights would log that they are gone.
	gone := func(workloads bool) {
		for _, o := range objects {
			if slices.Contains(workloadKinds, o.GetKind()) == workloads {
				assert.NoError(t, w.delete(t.Context(), o))
			}
		}
	}
	gone(true)
	w.eventually("its pods are gone", func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace, "")
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("left: %d pods", len(pods))
		}
		return err
	})
	gone(false)
	keep := 0 // volumes that are to outlive the release
	for _, o := range objects {
		templates, _, _ := unstructured.NestedSlice(o.Object, "spec", "volumeClaimTemplates")
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
		if policy == "Retain" {
			keep += len(templates)
		}
	}
	w.eventually("its volumes are gone", func(ctx context.Context) error {
		claims, err := w.Client().CoreV1().PersistentVolumeClaims(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(claims.Items) != keep {
			return fmt.Errorf("left: %d claims, want %d", len(claims.Items), keep)
		}
		return nil
	})
}

// works is an error until a pod of a workload is ready, or its collector has
// found nothing wrong with its configuration.
func (w *world) works(ctx context.Context, workload *unstructured.Unstructured, started bool) error {
	labels, _, err := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return err
	}
	pods, err := w.pods(ctx, workload.GetNamespace(), metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels}))
	if err != nil {
		return err
	}
	err = errors.New("no pods")
	for i := range pods {
		pod := &pods[i]
		if ready(pod) {
			return nil
		}
		err = errors.New(state(pod))
		for _, c := range pod.Status.ContainerStatuses {
			ended := c.LastTerminationState.Terminated
			if ended == nil {
				continue
			}
			if !started && ended.ExitCode == 0 {
				return nil
			}
			log, _ := w.log(pod.Namespace, pod.Name)
			err = fmt.Errorf("%s ended with %d: %s", pod.Name, ended.ExitCode, log)
			if c.RestartCount > 2 {
				return crash{err}
			}
		}
	}
	return err
}

// crash is an error that does not go away.
type crash struct{ error }

// accounts are those that are there before the chart in some drawings.
func (w *world) accounts(namespace string) {
	w.t.Helper()
	for _, name := range []string{"agents", "gateways"} {
		_, err := w.Client().CoreV1().ServiceAccounts(namespace).Create(w.t.Context(),
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
}

// issue does what cert-manager does for a Certificate.
func (w *world) issue(namespace string, o *unstructured.Unstructured) {
	w.t.Helper()
	name, _, err := unstructured.NestedString(o.Object, "spec", "secretName")
	require.NoError(w.t, err)
	cert, key := certificate(w.t)
	_, err = w.Client().CoreV1().Secrets(namespace).Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"ca.crt": cert, "tls.crt": cert, "tls.key": key},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// podSecurity: what the chart runs beside the agents is admitted where only
// restricted pods are; the agent is where that does not matter, and is refused
// elsewhere for the reasons that the README gives.
func podSecurity(t *testing.T, a *api) {
	for _, level := range []string{"restricted", "baseline", "privileged"} {
		_, err := a.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: level, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, a.CreateNamespace(t.Context(), level)) // which waits for its account
	}
	h := newHelm(t, "helm4", a.AdminKubeconfig())
	for _, d := range []struct {
		name, values, kind, object string
		restricted, baseline       string // part of the refusal; empty: admitted
	}{
		{"gateway", "", "StatefulSet", "otelcol-gpu-gateway", "", ""},
		{"raw gateway", "rawGateway: {enabled: true, backend: {endpoint: 'a.example.com:4317'}}", "Deployment", "otelcol-gpu-raw", "", ""},
		{"agent", "", "DaemonSet", "otelcol-gpu-agent", "hostPath", "hostPath"},
		{"agent without the kubelet", "agent: {podResources: {enabled: false}, stateHostPath: ''}", "DaemonSet", "otelcol-gpu-agent", "", ""},
		{"standalone", "mode: standalone", "Deployment", "otelcol-gpu", "hostPath", "hostPath"},
	} {
		t.Run(d.name, func(t *testing.T) {
			text, err := h.template(t, d.values)
			require.NoError(t, err)
			workload := find(t, decode(t, text), d.kind, d.object)
			for level, want := range map[string]string{"restricted": d.restricted, "baseline": d.baseline, "privileged": ""} {
				err := a.admit(t.Context(), workload, level)
				if want == "" {
					assert.NoError(t, err, level)
					continue
				}
				require.Error(t, err, level)
				assert.Contains(t, err.Error(), "violates PodSecurity", level)
				assert.Contains(t, err.Error(), want, level)
			}
		})
	}
}

// admit asks the API server whether a pod of a workload would be admitted.
func (a *api) admit(ctx context.Context, workload *unstructured.Unstructured, namespace string) error {
	template, _, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil {
		return err
	}
	claims, _, err := unstructured.NestedSlice(workload.Object, "spec", "volumeClaimTemplates")
	if err != nil {
		return err
	}
	volumes, _, err := unstructured.NestedSlice(template, "spec", "volumes")
	if err != nil {
		return err
	}
	for _, claim := range claims {
		name, _, _ := unstructured.NestedString(claim.(map[string]any), "metadata", "name")
		volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
	}
	pod := &unstructured.Unstructured{Object: template}
	_ = unstructured.SetNestedSlice(pod.Object, volumes, "spec", "volumes")
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetName("probe")
	pod.SetNamespace(namespace)
	_ = unstructured.SetNestedField(pod.Object, "default", "spec", "serviceAccountName")
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	_, err = a.client.Resource(pods).Namespace(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// foreign are kinds of others that the chart makes objects of.
var foreign = []struct {
	group, version, kind, plural string
	cluster                      bool
}{
	{"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors", false},
	{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", false},
	{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", false},
	{"cert-manager.io", "v1", "Certificate", "certificates", false},
	{"security.openshift.io", "v1", "SecurityContextConstraints", "securitycontextconstraints", true},
}

// installForeign creates their CRDs. They take any field.
func installForeign(t *testing.T, a *api) {
	t.Helper()
	for _, f := range foreign {
		scope := "Namespaced"
		if f.cluster {
			scope = "Cluster"
		}
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": f.plural + "." + f.group},
			"spec": map[string]any{
				"group": f.group, "scope": scope,
				"names": map[string]any{"kind": f.kind, "plural": f.plural, "singular": strings.ToLower(f.kind)},
				"versions": []any{map[string]any{
					"name": f.version, "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		require.NoError(t, a.apply(t.Context(), crd))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		probe := &unstructured.Unstructured{}
		probe.SetAPIVersion(f.group + "/" + f.version)
		probe.SetKind(f.kind)
		probe.SetNamespace("default")
		require.NoError(t, a.Wait(ctx, f.kind, func(ctx context.Context) error {
			resource, err := a.resource(probe)
			if err != nil {
				return err
			}
			_, err = resource.List(ctx, metav1.ListOptions{})
			return err
		}))
		cancel()
	}
}
