// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package runner runs pods of a [cluster.Cluster] as processes of this machine,
// where there is no container engine. Controllers and scheduler are the real
// ones; for pods that KWOK leaves alone ([cluster.Options].Unplayed) the runner
// does what kubelet, kube-proxy, DNS and a volume provisioner would do:
//
//   - a container's command runs with its arguments and environment; ConfigMaps,
//     Secrets, projected volumes, hostPaths and claims are folders
//   - every pod has an address of its own (127.x.y.z), and another that is its
//     own loopback: what listens on localhost there is not reached by others
//   - a Service is an address as well, which hands connections to ready pods
//   - readiness and liveness probes, restarts with back-off, SIGTERM and grace
//   - claims get a volume, which goes with the claim
//
// What is another here than in a container: paths of volumes, the names of
// Services and localhost are rewritten in arguments, environment and ConfigMaps,
// since all processes share one file system and network; limits of memory and
// CPU, users, capabilities and network policies are not enforced; a pod's token
// is in a kubeconfig, which Options.Adapt can name to its programs.
//
// Linux only: elsewhere 127.0.0.1 is the only loopback address.
package runner
