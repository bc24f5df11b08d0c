// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package probe has what all probes of an installation share: what they are given,
// what they return, and how several run side by side.
package probe

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/kube"
)

// Status is how something was found.
type Status string

const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Fail    Status = "fail"
	Skipped Status = "skipped" // there is nothing to look at, or no way to
)

// Result is one thing that was looked at.
type Result struct {
	// Check is the name of the probe. Run sets it.
	Check string `json:"check"`
	// Subject is which of several things it is about.
	Subject string `json:"subject,omitempty"`
	Status  Status `json:"status"`
	Seen    string `json:"seen"`
	// Remedy is what to do, on one line or several.
	Remedy string `json:"remedy,omitempty"`
}

// New returns a result.
func New(subject string, status Status, seen, remedy string) Result {
	return Result{Subject: subject, Status: status, Seen: seen, Remedy: remedy}
}

// Invalid is the result for a component with a configuration that cannot be read.
func Invalid(subject string, err error) Result {
	return New(subject, Fail, err.Error(), "otelcol-gpu validate with the same --config shows why")
}

// Logs is where to look when the collector does not answer.
const Logs = "look at its log: kubectl logs -n otelcol-gpu ds/otelcol-gpu-agent, statefulset/otelcol-gpu-gateway, or journalctl -u otelcol-gpu"

// MaxListed is how many of several things a result lists.
const MaxListed = 3

// Env is what probes look at. They do not change it.
type Env struct {
	// Config of the collector; without components where only a cluster is asked.
	Config *config.Configuration
	// Kube is the API of the cluster.
	Kube *kube.Client
	// Role is the one to check the rights of where there is neither a configuration nor a
	// collector here, but only a cluster: agent or gateway. Else empty.
	Role string
	// Exporters are URLs that are looked at instead of the configured ones.
	Exporters []string
	// Token for the console.
	Token string
	// Version of gpuctl.
	Version string
	// Timeout of each probe, without Watch.
	Timeout time.Duration
	// Watch is the time between two readings of what must move. 0: one reading.
	Watch time.Duration
	// Now is the time at which the examination began.
	Now time.Time
	// Progress counts what is done.
	Progress *Progress
}

// User is the user that must be allowed to read and write files.
func User() string {
	if id := os.Getuid(); id >= 0 {
		return fmt.Sprintf("user %d", id)
	}
	return "this user"
}

// Func looks at one part of an installation.
type Func func(context.Context, Env) []Result
