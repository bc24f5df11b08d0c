// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/internal/serviceidentity"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/otlp"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

const (
	root = "../../.."
	node = "node-1"
	// pause is between two looks at something that takes its time.
	pause = 50 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One cluster, one story: the steps build on each other.
func TestAgentAndServiceIdentityAgree(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()
	config := c.RESTConfig()
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // odd names are the point
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	require.NoError(t, c.AddNode(t.Context(), cluster.NodeSpec{Name: node}))
	for _, name := range namespaces {
		require.NoError(t, c.CreateNamespace(t.Context(), name))
	}
	a := startAgent(t, c)
	n := create(t.Context(), t, client)
	t.Logf("%d pods", n)
	eventually(t, "every pod runs", func(ctx context.Context) error {
		if got := len(pods(ctx, t, client)); got != n {
			return fmt.Errorf("%d of %d pods", got, n)
		}
		return c.Err()
	})

	t.Run("every pod", func(t *testing.T) {
		a.agree(t, pods(t.Context(), t, client))
	})
	t.Run("owners are those of the API", func(t *testing.T) {
		ownersAreReal(t, client, 1)
	})
	t.Run("a pod that is replaced under its name", func(t *testing.T) {
		old, err := client.CoreV1().Pods("inference").Get(t.Context(), "db-0", metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, client.CoreV1().Pods("inference").Delete(t.Context(), "db-0", metav1.DeleteOptions{}))
		eventually(t, "db-0 is another", func(ctx context.Context) error {
			p, err := client.CoreV1().Pods("inference").Get(ctx, "db-0", metav1.GetOptions{})
			if err == nil && (p.UID == old.UID || p.Status.Phase != corev1.PodRunning) {
				err = errors.New("not yet")
			}
			return err
		})
		a.agree(t, pods(t.Context(), t, client))
	})
	t.Run("labels and annotations that change", func(t *testing.T) {
		p, err := client.CoreV1().Pods("inference").Get(t.Context(), "plain", metav1.GetOptions{})
		require.NoError(t, err)
		p.Labels, p.Annotations = labels{instance: "changed"}, nil
		p, err = client.CoreV1().Pods("inference").Update(t.Context(), p, metav1.UpdateOptions{})
		require.NoError(t, err)
		a.agree(t, []corev1.Pod{*p})
		p.Annotations = labels{annotation: "changed again"}
		p, err = client.CoreV1().Pods("inference").Update(t.Context(), p, metav1.UpdateOptions{})
		require.NoError(t, err)
		a.agree(t, []corev1.Pod{*p})
	})
	t.Run("a CronJob that fires", func(t *testing.T) { firesOnce(t, a, client) })
	t.Run("a pod of another node", func(t *testing.T) {
		require.NoError(t, c.AddNode(t.Context(), cluster.NodeSpec{Name: "node-2"}))
		require.NoError(t, c.Cordon(t.Context(), "node-2", true)) // what comes later is not for it
		var elsewhere []corev1.Pod
		eventually(t, "the DaemonSet is there", func(ctx context.Context) error {
			if elsewhere = podsOf(ctx, t, client, "node-2"); len(elsewhere) != 1 {
				return fmt.Errorf("%d pods", len(elsewhere))
			}
			return nil
		})
		a.gpu.Reset()
		p := map[string]string{"k8s.namespace.name": elsewhere[0].Namespace, "k8s.pod.name": elsewhere[0].Name}
		require.NoError(t, otlp.Post(t.Context(), a.url(), otlp.Metrics, p))
		eventually(t, "it comes out", func(context.Context) error {
			if len(sent(a.gpu)) != 1 {
				return errors.New("not yet")
			}
			return nil
		})
		p["k8s.cluster.name"] = "real"
		assert.Equal(t, p, sent(a.gpu)[0].Attributes, "nothing is known of it, and nothing is guessed")
	})
	t.Run("the rights are enough", func(t *testing.T) {
		text, err := os.ReadFile(a.collector.LogPath)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "forbidden")
	})
	t.Run("without the API server what is known stays known", func(t *testing.T) {
		all := pods(t.Context(), t, client)
		require.NoError(t, c.StopAPIServer())
		a.agree(t, all)
		require.NoError(t, c.StartAPIServer(t.Context()))
		_, err := client.CoreV1().Pods("inference").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "late", Labels: labels{lws: "late-lws"}},
			Spec:       spec(),
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		eventually(t, "the late pod runs", func(ctx context.Context) error {
			p, err := client.CoreV1().Pods("inference").Get(ctx, "late", metav1.GetOptions{})
			if err == nil && p.Status.Phase != corev1.PodRunning {
				err = errors.New("not yet")
			}
			return err
		})
		a.agree(t, pods(t.Context(), t, client))
	})
}

// A CronJob that fires: its controller names the Job as it was assumed.
func firesOnce(t *testing.T, a *agent, client kubernetes.Interface) {
	history := int32(0)
	_, err := client.BatchV1().CronJobs("a--b").Create(t.Context(), &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "every-minute"},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent, SuccessfulJobsHistoryLimit: &history,
			JobTemplate: batchv1.JobTemplateSpec{Spec: job(spec(), meta{})}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	var fired []corev1.Pod
	eventually(t, "the CronJob fires", func(ctx context.Context) error {
		fired = nil
		for _, p := range pods(ctx, t, client) {
			if want(&p)["k8s.cronjob.name"] == "every-minute" {
				fired = append(fired, p)
			}
		}
		if len(fired) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	ownersAreReal(t, client, 2)
	a.agree(t, fired)
}

// pods are the pods that run on the agent's node.
func pods(ctx context.Context, t *testing.T, client kubernetes.Interface) []corev1.Pod {
	t.Helper()
	return podsOf(ctx, t, client, node)
}

func podsOf(ctx context.Context, t *testing.T, client kubernetes.Interface, node string) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node + ",status.phase=Running"})
	require.NoError(t, err)
	return list.Items
}

// want is the identity that a pod must have.
func want(p *corev1.Pod) map[string]string {
	in := serviceidentity.Pod{Name: p.Name, Labels: p.Labels, Annotations: p.Annotations, Created: p.CreationTimestamp.Time}
	for _, o := range p.OwnerReferences {
		in.Owners = append(in.Owners, serviceidentity.Owner{Kind: o.Kind, Name: o.Name})
	}
	w := map[string]string{"k8s.namespace.name": p.Namespace, "k8s.pod.name": p.Name, "k8s.cluster.name": "real"}
	o := serviceidentity.OwnersOf(in)
	for k, v := range map[string]string{
		"service.name": serviceidentity.FromPod(in), "k8s.deployment.name": o.Deployment, "k8s.statefulset.name": o.StatefulSet,
		"k8s.daemonset.name": o.DaemonSet, "k8s.cronjob.name": o.CronJob, "k8s.job.name": o.Job,
	} {
		if v != "" {
			w[k] = v
		}
	}
	w["k8s.pod.uid"], w["k8s.node.name"] = string(p.UID), p.Spec.NodeName
	w["k8s.pod.start_time"] = p.CreationTimestamp.UTC().Format(time.RFC3339)
	return w
}

// agree sends a resource for each pod through the pipeline of GPU telemetry and
// that of applications, and compares everything that comes out. k8s_attributes
// learns of a change a moment after the API server has it, so it is asked again
// until it agrees; what it reports after a minute is a difference.
func (a *agent) agree(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	require.NotEmpty(t, pods)
	var resources []map[string]string
	wants := map[string]map[string]string{}
	for i := range pods {
		w := want(&pods[i])
		wants[key(w)] = w
		resources = append(resources, map[string]string{"k8s.namespace.name": pods[i].Namespace, "k8s.pod.name": pods[i].Name})
	}
	var differ error
	deadline := time.Now().Add(3 * time.Minute)
	for ok := false; !ok && time.Now().Before(deadline); time.Sleep(pause) {
		a.gpu.Reset()
		a.apps.Reset()
		require.NoError(t, otlp.Post(t.Context(), a.url(), otlp.Metrics, resources...))
		eventually(t, "all come out", func(context.Context) error {
			if g, o := len(sent(a.gpu)), len(sent(a.apps)); g != len(pods) || o != len(pods) {
				return fmt.Errorf("%d and %d of %d", g, o, len(pods))
			}
			return nil
		})
		differ = errors.Join(compare(wants, sent(a.gpu)), compare(wants, sent(a.apps)))
		ok = differ == nil
	}
	require.NoError(t, differ)
}

// sent are the resources that otlp.Post sent: the agent's own receivers report
// through the pipeline of GPU telemetry too, whenever their interval is over.
func sent(s *otlp.Sink) []otlp.Resource {
	return slices.DeleteFunc(s.Resources(), func(r otlp.Resource) bool { return !slices.Contains(r.Metrics, "test") })
}

func key(a map[string]string) string { return a["k8s.namespace.name"] + "/" + a["k8s.pod.name"] }

func compare(wants map[string]map[string]string, got []otlp.Resource) error {
	var errs []error
	seen := map[string]bool{}
	for _, r := range got {
		id := key(r.Attributes)
		seen[id] = true
		if w := wants[id]; !assert.ObjectsAreEqual(w, r.Attributes) {
			errs = append(errs, fmt.Errorf("%s:\n serviceidentity %v\n k8s_attributes  %v", id, w, r.Attributes))
		}
	}
	if len(seen) != len(wants) {
		errs = append(errs, fmt.Errorf("%d of %d pods came out", len(seen), len(wants)))
	}
	return errors.Join(errs...)
}

// ownersAreReal compares what is read from names with who owns whom in the API.
func ownersAreReal(t *testing.T, client kubernetes.Interface, cronJobs int) {
	deployments, fired := 0, 0
	for _, p := range pods(t.Context(), t, client) {
		ref := metav1.GetControllerOf(&p)
		if ref == nil {
			continue
		}
		switch ref.APIVersion + "/" + ref.Kind {
		case "apps/v1/ReplicaSet":
			rs, err := client.AppsV1().ReplicaSets(p.Namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
			require.NoError(t, err)
			name := ""
			if d := metav1.GetControllerOf(rs); d != nil {
				name = d.Name
				deployments++
			}
			assert.Equal(t, name, want(&p)["k8s.deployment.name"], p.Name)
		case "batch/v1/Job":
			job, err := client.BatchV1().Jobs(p.Namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
			require.NoError(t, err)
			name := ""
			if c := metav1.GetControllerOf(job); c != nil {
				name = c.Name
				fired++
			}
			assert.Equal(t, name, want(&p)["k8s.cronjob.name"], p.Name)
		}
	}
	assert.Greater(t, deployments, 10)
	assert.Equal(t, cronJobs, fired)
}
