// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-gpu/otelcol-gpu/internal/schedulingmodel"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/cluster"
)

const (
	root        = "../../.." // of the repository
	clusterName = "real"
	patience    = 3 * time.Minute // bounds every wait
)

type m = map[string]any

func TestMain(main *testing.M) {
	goleak.VerifyTestMain(main, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// world is a cluster with a gateway.
type world struct {
	*cluster.Cluster
	t       *testing.T
	logged  []string // paths
	gateway *collector.Collector
	model   schedulingmodel.Model
}

func start(t *testing.T) *world {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	w := &world{Cluster: c, t: t, model: schedulingmodel.Model{
		Window: 24 * time.Hour, Tolerated: []string{"nvidia.com/gpu"},
		Device: func(name string) bool { return name == "nvidia.com/gpu" },
		Driver: func(name string) bool { return name == driver },
		Serves: func(class string) string { return class },
	}}
	t.Cleanup(func() {
		if t.Failed() {
			w.logs()
		}
		assert.NoError(t, c.Stop())
	})
	return w
}

// kubectl runs the real one as the administrator, and returns its output.
func (w *world) kubectl(input string, args ...string) string {
	w.t.Helper()
	out, err := w.run(input, args...)
	require.NoError(w.t, err)
	return out
}

func (w *world) try(input string, args ...string) error {
	_, err := w.run(input, args...)
	return err
}

func (w *world) run(input string, args ...string) (string, error) {
	path, err := filepath.Abs(filepath.Join(root, "bin", "clients", "kubectl", "kubectl"))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(w.t.Context(), path, args...)
	cmd.Env = []string{"HOME=" + w.Dir(), "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + w.AdminKubeconfig()}
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out), nil
}

// eventually waits until done has no objection.
func (w *world) eventually(what string, done func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.Wait(ctx, what, done))
}

// logs prints the ends of the logs.
func (w *world) logs() {
	for _, path := range w.logged {
		text, err := os.ReadFile(path)
		w.t.Logf("the end of %s (%v):\n%s", filepath.Base(path), err, text[max(0, len(text)-4000):])
	}
}
