// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	root    = "../../.." // of the repository
	release = "otelcol-gpu"
)

// helm is one major of Helm's command line. It knows nothing of the machine's own.
type helm struct {
	name string // helm3 or helm4
	path string
	env  []string
}

// helms are both majors, without a cluster.
func helms(t *testing.T) []helm {
	t.Helper()
	return []helm{newHelm(t, "helm3", os.DevNull), newHelm(t, "helm4", os.DevNull)}
}

func newHelm(t *testing.T, name, kubeconfig string) helm {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "bin", "clients", name, "helm"))
	require.NoError(t, err)
	require.FileExists(t, path, "run scripts/kubernetes-clients")
	home := t.TempDir()
	return helm{name: name, path: path, env: []string{
		"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home,
		"PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + kubeconfig,
	}}
}

// run runs one command in the root of the repository. What went wrong is the
// error's text.
func (h helm) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.path, args...)
	cmd.Dir, cmd.Env = root, h.env
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(h.name + " " + args[0] + ": " + err.Error() + "\n" + stderr.String() + out.String())
	}
	return out.String(), nil
}

// template renders the chart with values as YAML.
func (h helm) template(t *testing.T, values string, more ...string) (string, error) {
	t.Helper()
	args := append([]string{"template", release, "charts/otelcol-gpu", "--namespace", release}, valuesArgs(t, values)...)
	return h.run(t.Context(), append(args, more...)...)
}

// valuesArgs are a file with values, a cluster's name and an image
// where they have none.
func valuesArgs(t *testing.T, values string) []string {
	t.Helper()
	// Not the test's own folder: Helm takes a comma in its name for a list.
	dir, err := os.MkdirTemp("", "values")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	args := []string{"--values", file}
	if !strings.Contains(values, "clusterName:") {
		args = append(args, "--set", "clusterName=test")
	}
	if !strings.Contains(values, "image:") {
		args = append(args, "--set", "image.repository=registry.example.com/otelcol-gpu")
	}
	return args
}

// decode are the objects of what was rendered.
func decode(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// find is the object of a kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	require.Failf(t, "not rendered", "%s %s", kind, name)
	return nil
}
