// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

// TestMain is also the program that pods run.
func TestMain(m *testing.M) {
	if address := os.Getenv("SERVE"); address != "" {
		if err := serveSelf(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveSelf shows its arguments, its secret and its configuration; it ends when
// it is configured, and notes how often it was started and stopped.
func serveSelf(address string) error {
	state := os.Getenv("STATE")
	note := func(what string) error {
		f, err := os.OpenFile(filepath.Join(state, "notes"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, what)
			err = errors.Join(err, f.Close())
		}
		return err
	}
	if err := note("started"); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		config, _ := os.ReadFile(os.Args[1])
		notes, _ := os.ReadFile(filepath.Join(state, "notes"))
		fmt.Fprintf(w, "%s\n%s\n%s\n%s", os.Getenv("POD"), os.Getenv("PASSWORD"), config, notes)
	})
	mux.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(listener, mux) }()
	private, err := net.Listen("tcp", os.Getenv("PRIVATE")) // every pod the same
	if err != nil {
		return err
	}
	defer private.Close()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	<-term
	return note("stopped")
}

const selector = "run=process"

func TestRunner(t *testing.T) {
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir(), Unplayed: selector})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	require.NoError(t, c.AddNode(t.Context(), cluster.NodeSpec{Name: "a"}))
	r, err := Start(t.Context(), Options{
		Cluster: c, Selector: selector, Dir: t.TempDir(),
		Program: func(*corev1.Pod, *corev1.Container) (Program, error) { return Program{Path: os.Args[0]}, nil },
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Stop()
		assert.NoError(t, r.Err())
	})
	create(t, c)
	eventually := func(what string, done func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		require.NoError(t, c.Wait(ctx, what, done))
	}
	service := "http://" + r.ServiceAddress("default", "app", 80)
	answer := ""
	eventually("both pods are ready", func(ctx context.Context) error { return readyPods(ctx, c, 2) })
	eventually("the service answers", func(ctx context.Context) (err error) {
		answer, err = page(ctx, service)
		return err
	})
	in, err := r.Pod("default", "app-0")
	require.NoError(t, err)

	t.Run("environment, secret, configuration", func(t *testing.T) {
		text, err := page(t.Context(), "http://"+in.Address+":8080/")
		require.NoError(t, err)
		assert.Equal(t, "app-0\nsecret\nlisten: "+in.Loopback+":9000, data: "+in.Mounts["/var/lib/app"]+"\nstarted\n", text)
		assert.Contains(t, answer, "secret")
	})
	t.Run("the same port of two pods' loopbacks", func(t *testing.T) {
		other, err := r.Pod("default", "app-1")
		require.NoError(t, err)
		for _, address := range []string{in.Loopback, other.Loopback} {
			conn, err := net.Dial("tcp", address+":9000")
			require.NoError(t, err)
			_ = conn.Close()
		}
		_, err = net.Dial("tcp", in.Address+":9000")
		assert.Error(t, err, "loopback is the pod's own")
	})
	t.Run("the account's token", func(t *testing.T) {
		config, err := clientcmd.BuildConfigFromFlags("", in.Kubeconfig)
		require.NoError(t, err)
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.NoError(t, err)
		assert.Equal(t, "system:serviceaccount:default:default", who.Status.UserInfo.Username)
		_, err = client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		assert.ErrorContains(t, err, "forbidden")
	})
	t.Run("a container that ends is started again", func(t *testing.T) {
		_, _ = page(t.Context(), "http://"+in.Address+":8080/exit")
		eventually("its second start", func(ctx context.Context) error {
			pod, err := c.Client().CoreV1().Pods("default").Get(ctx, "app-0", metav1.GetOptions{})
			if err != nil {
				return err
			}
			s := pod.Status.ContainerStatuses[0]
			if s.RestartCount != 1 || !s.Ready || s.LastTerminationState.Terminated.ExitCode != 3 {
				return fmt.Errorf("%+v", s)
			}
			return nil
		})
	})
	t.Run("a pod that is deleted is asked to end, and its volume stays", func(t *testing.T) {
		require.NoError(t, c.Client().CoreV1().Pods("default").Delete(t.Context(), "app-0", metav1.DeleteOptions{}))
		eventually("the next pod", func(ctx context.Context) error {
			next, err := r.Pod("default", "app-0")
			if err != nil {
				return err
			}
			if next.Address == in.Address {
				return errors.New("the old one")
			}
			text, err := page(ctx, "http://"+next.Address+":8080/")
			if err == nil && !strings.HasSuffix(text, "\nstarted\nstarted\nstopped\nstarted\n") {
				err = errors.New(text)
			}
			return err
		})
		eventually("the service leads there", func(ctx context.Context) error {
			text, err := page(ctx, service)
			if err == nil && !strings.HasPrefix(text, "app-0\n") {
				err = errors.New("the other one answers")
			}
			return err
		})
	})
	t.Run("a node without power", func(t *testing.T) {
		r.PowerOff("a")
		_, err := page(t.Context(), service)
		assert.Error(t, err)
		require.NoError(t, readyPods(t.Context(), c, 2), "nobody told the cluster")
	})
}

// create makes a StatefulSet of two pods that use everything that the runner has.
func create(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	core := c.Client().CoreV1()
	_, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "app"}, StringData: map[string]string{"password": "secret"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "app"}, Data: map[string]string{"app.yaml": "listen: localhost:9000, data: /var/lib/app"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	labels := map[string]string{"run": "process"}
	_, err = core.Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	_, err = c.Client().AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec: appsv1.StatefulSetSpec{
			ServiceName: "app", Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "app", Image: "app", Args: []string{"/etc/app/app.yaml"},
						Env: []corev1.EnvVar{
							{Name: "IP", ValueFrom: field("status.podIP")}, {Name: "POD", ValueFrom: field("metadata.name")},
							{Name: "SERVE", Value: "$(IP):8080"}, {Name: "PRIVATE", Value: "localhost:9000"}, {Name: "STATE", Value: "/var/lib/app"},
							{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}, Key: "password"}}},
						},
						Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}},
						VolumeMounts:   []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}, {Name: "state", MountPath: "/var/lib/app"}},
					}},
					Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "app"}}}}},
				},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "state"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func readyPods(ctx context.Context, c *cluster.Cluster, n int) error {
	set, err := c.Client().AppsV1().StatefulSets("default").Get(ctx, "app", metav1.GetOptions{})
	if err == nil && int(set.Status.ReadyReplicas) != n {
		err = fmt.Errorf("%+v", set.Status)
	}
	return err
}

func page(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
