// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos lets a simulated fleet live for hours while everything around it
// breaks, and judges all the time whether the collectors that watch it keep their
// promises.
//
// Run starts a gateway and an agent on each node, as processes of the real
// binary, on simulated GPUs, kubelets, an API server and webhooks. It plays
// rounds: some faults that overlap, then the time that the fleet may take to be
// whole again, then a while in which nothing happens. Judges that know the truth
// compare with it what the collectors report. All is drawn from a seed.
package chaos
