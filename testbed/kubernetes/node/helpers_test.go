// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

func start(t *testing.T, c *cluster.Cluster, o Options) *Node {
	t.Helper()
	n, err := Start(t.Context(), c, o)
	require.NoError(t, err)
	t.Cleanup(n.Stop)
	return n
}

// names of the pods that hold something, sorted.
func names(n *Node) (out []string) {
	for _, owners := range n.Truth().Owners {
		for _, h := range owners {
			out = append(out, h.Pod.Name)
		}
	}
	slices.Sort(out)
	return out
}

// world is what a user does with the cluster.
type world struct {
	*cluster.Cluster
	t *testing.T
}

func (w world) in(t *testing.T) *world { return &world{w.Cluster, t} }

func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}

// wait waits until so many devices of the node are held and no pod waits for one.
func (w *world) wait(n *Node, held int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d devices held", held), func(context.Context) error {
		truth := n.Truth()
		if len(truth.Owners) != held || len(truth.Unserved) > 0 {
			return fmt.Errorf("held: %v, unserved: %v", truth.Owners, truth.Unserved)
		}
		return n.Err()
	})
}

func (w *world) template(app, node string, limits corev1.ResourceList) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers:   []corev1.Container{{Name: "main", Image: "example.com/" + app, Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}
}

func limits(name string, n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}
}

func (w *world) deploy(name, node string, replicas int32, resource string, n int64) {
	w.t.Helper()
	template := w.template(name, node, limits(resource, n))
	_, err := w.Client().AppsV1().Deployments("default").Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) patch(name, patch string) {
	w.t.Helper()
	_, err := w.Client().AppsV1().Deployments("default").Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func (w *world) scale(name string, replicas int) {
	w.t.Helper()
	w.patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (w *world) rollOut(name string) {
	w.t.Helper()
	w.patch(name, `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
}

func (w *world) delete(name string) {
	w.t.Helper()
	policy := metav1.DeletePropagationBackground
	require.NoError(w.t, w.Client().AppsV1().Deployments("default").Delete(w.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// deletePod gives the pod so many seconds; with 0 its node is not waited for.
func (w *world) deletePod(name string, grace int64) {
	w.t.Helper()
	require.NoError(w.t, w.Client().CoreV1().Pods("default").Delete(w.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace}))
}

func (w *world) job(name, node string, gpus int64) {
	w.t.Helper()
	template := w.template(name, node, limits("nvidia.com/gpu", gpus))
	template.Annotations = map[string]string{AnnotationLoad: "training"}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := w.Client().BatchV1().Jobs("default").Create(w.t.Context(),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: template}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) annotate(pod, key, value string) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := w.Client().CoreV1().Pods("default").Patch(w.t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// claimTemplate makes a template for claims of one device of a class.
func (w *world) claimTemplate(name, class string) {
	w.t.Helper()
	_, err := w.Client().ResourceV1().ResourceClaimTemplates("default").Create(w.t.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) podWithClaim(name, template string) {
	w.t.Helper()
	spec := w.template(name, "dra", nil).Spec
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	_, err := w.Client().CoreV1().Pods("default").Create(w.t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// sliceDevice is the name that the node's ResourceSlice gives to a GPU.
func (w *world) sliceDevice(node, uuid string) string {
	w.t.Helper()
	slice, err := w.Client().ResourceV1().ResourceSlices().Get(w.t.Context(), node+"-"+Driver, metav1.GetOptions{})
	require.NoError(w.t, err)
	for _, d := range slice.Spec.Devices {
		if *d.Attributes["uuid"].StringValue == uuid {
			return d.Name
		}
	}
	return ""
}

func (w *world) list(n *Node) *podresources.ListPodResourcesResponse {
	w.t.Helper()
	conn, err := grpc.NewClient("unix://"+n.Socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w.t, err)
	defer conn.Close()
	answer, err := podresources.NewPodResourcesListerClient(conn).List(w.t.Context(), &podresources.ListPodResourcesRequest{})
	require.NoError(w.t, err)
	return answer
}

// podResources is what the kubelet's API reports of the device plugin: pod by the
// kubelet's id of the device.
func (w *world) podResources(n *Node) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, pod := range w.list(n).PodResources {
		for _, c := range pod.Containers {
			for _, d := range c.Devices {
				for _, id := range d.DeviceIds {
					out[id] = pod.Name
				}
			}
		}
	}
	return out
}

// dynamicResources is what the kubelet's API reports of DRA: pod by device.
func (w *world) dynamicResources(n *Node) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, pod := range w.list(n).PodResources {
		for _, c := range pod.Containers {
			for _, claim := range c.DynamicResources {
				for _, r := range claim.ClaimResources {
					require.Equal(w.t, Driver, r.DriverName)
					require.Equal(w.t, n.Name(), r.PoolName)
					out[r.DeviceName] = pod.Name
				}
			}
		}
	}
	return out
}

var labelValue = regexp.MustCompile(`(\w+)="([^"]*)"`)

// exporterPage is the owner of each device according to the exporter's labels.
func (w *world) exporterPage(n *Node) map[string]string {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, n.ExporterURL(), nil)
	require.NoError(w.t, err)
	request.Close = true // no idle connection is left
	answer, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "DCGM_FI_DEV_FB_USED{") {
			continue
		}
		labels := map[string]string{}
		for _, match := range labelValue.FindAllStringSubmatch(lines.Text(), -1) {
			labels[match[1]] = match[2]
		}
		id := labels["UUID"]
		if gi := labels["GPU_I_ID"]; gi != "" {
			id += "/" + gi
		}
		if pod := labels["pod"]; pod != "" {
			out[id] = pod
		}
	}
	require.NoError(w.t, lines.Err())
	return out
}
