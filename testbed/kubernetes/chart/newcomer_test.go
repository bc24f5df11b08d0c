// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// forward is a kubectl port-forward as guides have it.
var forward = regexp.MustCompile(`^kubectl port-forward (?:--namespace|-n) (\S+) (\S+) (\d+)(?::(\d+))?$`)

// TestNewcomer follows docs/install.md, and nothing else, on a cluster with
// two GPU nodes and an exporter: the commands run as they stand. Only kubectl
// port-forward, which needs a container engine, is played: it leads to the pod's
// own loopback.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	commands := guide(t, "docs/install.md", "helm")
	require.Contains(t, commands[0], "helm install")
	for _, major := range []string{"helm3", "helm4"} {
		t.Run(major, func(t *testing.T) {
			w := newWorld(t)
			w.addNode("gpu-a")
			w.addNode("gpu-b")
			w.exporters()
			page := ""
			for _, command := range commands {
				if parts := forward.FindStringSubmatch(command); parts != nil {
					page = w.forwarded(t, major, parts[1], parts[2], cmp.Or(parts[4], parts[3]))
					continue
				}
				out, err := w.shell(t, major, command)
				require.NoError(t, err, "%s\n%s", command, out)
				t.Logf("$ %s\n%s", command, out)
			}
			require.NotEmpty(t, page, "the guide ends with the console")
			text, err := get(t.Context(), page+"/")
			require.NoError(t, err)
			assert.Contains(t, strings.ToLower(string(text)), "<!doctype html>")
			var status struct {
				State     string
				Telemetry struct{ Devices *int }
			}
			w.eventually("the console shows every GPU", func(ctx context.Context) error {
				if err := getJSON(ctx, page+"/api/v1/status", &status); err != nil {
					return err
				}
				if status.Telemetry.Devices == nil || *status.Telemetry.Devices != 16 {
					return fmt.Errorf("%+v", status)
				}
				return nil
			})
			assert.Equal(t, "no_services", status.State, "nobody holds a GPU yet")
		})
	}
}

// guide are the commands of the block behind <!-- test: NAME --> in a document.
func guide(t *testing.T, document, name string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "<!-- test: "+name+" -->\n```sh\n")
	require.True(t, found, "%s has no block marked test: %s", document, name)
	block, _, found := strings.Cut(after, "\n```")
	require.True(t, found)
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, strings.Join(strings.Fields(line), " "))
		}
	}
	require.NotEmpty(t, commands)
	return commands
}

// shell runs a command in the root of the repository, with helm and kubectl as a
// person has them.
func (w *world) shell(t *testing.T, major, command string) (string, error) {
	t.Helper()
	clients, err := filepath.Abs(filepath.Join(root, "bin", "clients"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", command)
	home := t.TempDir()
	cmd.Dir = root
	cmd.Env = []string{
		"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + w.AdminKubeconfig(),
		"PATH=" + filepath.Join(clients, major) + ":" + filepath.Join(clients, "kubectl") + ":" + os.Getenv("PATH"),
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// forwarded is where a port of a workload's pod is, on the pod's loopback.
func (w *world) forwarded(t *testing.T, major, namespace, workload, port string) string {
	t.Helper()
	selector, err := w.shell(t, major, "kubectl get --namespace "+namespace+" "+workload+` -o jsonpath='{.spec.selector.matchLabels}'`)
	require.NoError(t, err, selector)
	var labels []string
	for _, pair := range regexp.MustCompile(`"([^"]+)":"([^"]+)"`).FindAllStringSubmatch(selector, -1) {
		labels = append(labels, pair[1]+"="+pair[2])
	}
	require.NotEmpty(t, labels, selector)
	var pod corev1.Pod
	w.eventually("a pod of "+workload, func(ctx context.Context) error {
		pods, err := w.pods(ctx, namespace, strings.Join(labels, ","))
		if err != nil {
			return err
		}
		if len(pods) == 0 || pods[0].Status.Phase != corev1.PodRunning {
			return errors.New("none runs")
		}
		pod = pods[0]
		return nil
	})
	in, err := w.runner.Pod(namespace, pod.Name)
	require.NoError(t, err)
	return "http://" + in.Loopback + ":" + port
}
