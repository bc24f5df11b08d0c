// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/kubernetes/bench/frame"
)

const alertmanagerModule = "github.com/prometheus/alertmanager"

// alertmanagerPath is the path of Alertmanager's own command, in the version of
// testbed/go.mod, which is built where it is missing. It is built as its release
// is, with the requirements of its own go.mod. But its web page is an empty one:
// the module has no built page, and does not compile without one.
func alertmanagerPath(ctx context.Context, w *frame.World) (string, error) {
	all, err := frame.Versions(w.Root)
	if err != nil {
		return "", err
	}
	// The copy that it is built of has no version in it, as others' binaries have.
	path := w.Bin("alertmanager-" + all["Alertmanager"])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	download := frame.Command(ctx, "go", "mod", "download", "-json", alertmanagerModule)
	download.Dir = filepath.Join(w.Root, "testbed")
	out, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("downloading alertmanager: %w\n%s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", fmt.Errorf("downloading alertmanager: %w", err)
	}
	// What is in the module cache cannot be added to.
	source, err := w.Folder("alertmanager-source")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
		return "", err
	}
	page := filepath.Join(source, "ui", "app", "dist")
	if err := os.MkdirAll(page, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(page, "index.html"), []byte("<!doctype html>\n"), 0o600); err != nil {
		return "", err
	}
	build := frame.Command(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/alertmanager")
	build.Dir = source
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building alertmanager: %w\n%s", err, out)
	}
	return path, nil
}
