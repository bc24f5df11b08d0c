// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One cluster, one story: the steps build on each other.
func TestCluster(t *testing.T) {
	c, err := Start(t.Context(), Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()
	client := c.Client()

	t.Run("serves DRA and what stands on it", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		require.NoError(t, err)
		assert.Equal(t, "v1.37.2", version.GitVersion)
		resources, err := client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1")
		require.NoError(t, err)
		var names []string
		for _, r := range resources.APIResources {
			names = append(names, r.Name)
		}
		assert.Subset(t, names, []string{"deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"})
	})

	t.Run("a service account may do what its role says", func(t *testing.T) {
		file, err := c.Kubeconfig(t.Context(), "monitoring", "collector")
		require.NoError(t, err)
		config, err := clientcmd.BuildConfigFromFlags("", file)
		require.NoError(t, err)
		collector, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		list := func() error {
			_, err := collector.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			return err
		}
		require.True(t, apierrors.IsForbidden(list()), "nothing is bound to the account yet")

		meta := metav1.ObjectMeta{Name: "collector"}
		_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta,
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "collector"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "monitoring", Name: "collector"}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, c, "the role is bound", func(context.Context) error { return list() })
		_, err = collector.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "the role says nothing of secrets: %v", err)
	})

	t.Run("a node has what it is given, and later something else", func(t *testing.T) {
		require.NoError(t, c.AddNode(t.Context(), NodeSpec{Name: "a", Capacity: gpus(8)}))
		require.NoError(t, c.SetCapacity(t.Context(), "a", corev1.ResourceList{
			"nvidia.com/gpu": resource.MustParse("2"), "nvidia.com/mig-1g.10gb": resource.MustParse("7"),
		}))
		node, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		got := map[corev1.ResourceName]string{}
		for name, quantity := range node.Status.Allocatable {
			got[name] = quantity.String()
		}
		assert.Equal(t, map[corev1.ResourceName]string{
			"cpu": "64", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "7",
		}, got)
	})

	t.Run("a job's pod ends where it is told to", func(t *testing.T) {
		template := pod("job", 1)
		template.Annotations = map[string]string{AnnotationCompleteAfter: "100ms"}
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := client.BatchV1().Jobs("default").Create(t.Context(),
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{Template: template}}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, c, "the job is complete", func(ctx context.Context) error {
			job, err := client.BatchV1().Jobs("default").Get(ctx, "job", metav1.GetOptions{})
			if err == nil && job.Status.CompletionTime == nil {
				err = errors.New("not yet")
			}
			return err
		})
	})

	t.Run("the API server goes and comes back", func(t *testing.T) {
		require.NoError(t, c.StopAPIServer())
		_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, c.StartAPIServer(t.Context()))

		// All the others must have survived it: the controller manager makes
		// pods, the scheduler places them, KWOK runs them.
		replicas := int32(2)
		template := pod("web", 1)
		_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, c, "the deployment is available", func(ctx context.Context) error {
			d, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
			if err == nil && d.Status.AvailableReplicas != replicas {
				err = errors.New("not yet")
			}
			return err
		})
		require.NoError(t, c.Err())
	})

	t.Run("a drained node has no pods and gets none", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		_, err := client.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: map[string]string{AnnotationStopAfter: "1s"}},
			Spec:       pod("slow", 0).Spec,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, c, "the pod runs", func(ctx context.Context) error {
			p, err := client.CoreV1().Pods("default").Get(ctx, "slow", metav1.GetOptions{})
			if err == nil && p.Status.Phase != corev1.PodRunning {
				err = errors.New("not yet")
			}
			return err
		})
		require.NoError(t, c.Drain(ctx, "a"))
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=a"})
		require.NoError(t, err)
		assert.Empty(t, pods.Items)
	})

	t.Run("nothing is left when it has stopped", func(t *testing.T) {
		pids := c.PIDs()
		require.Len(t, pids, 5)
		require.NoError(t, c.Stop())
		for name, pid := range pids {
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, name)
		}
		_, err := os.Stat(c.Dir())
		assert.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestStartErrors(t *testing.T) {
	t.Run("no programs", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Binaries: t.TempDir()})
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, "make kubernetes")
	})
	t.Run("a program ends", func(t *testing.T) {
		bin, dir := t.TempDir(), t.TempDir()
		for _, name := range []string{"etcd", apiServer, "kube-controller-manager", "kube-scheduler", "kwok"} {
			script := "#!/bin/sh\necho " + name + " has no wish to run\nexit 3\n"
			require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700))
		}
		_, err := Start(t.Context(), Options{Binaries: bin, Dir: dir})
		// The first of them that is seen to end: the API server may be faster.
		require.Error(t, err)
		assert.Regexp(t, "(etcd|"+apiServer+") has no wish to run", err.Error())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

// eventually fails the test if it is not so after a minute.
func eventually(t *testing.T, c *Cluster, what string, done func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, c.Wait(ctx, what, done))
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
}

func pod(app string, n int64) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/" + app}}},
	}
	if n > 0 {
		template.Spec.Containers[0].Resources.Limits = gpus(n)
	}
	return template
}
