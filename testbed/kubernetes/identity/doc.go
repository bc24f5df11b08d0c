// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity proves on a real API server what config/agent.yaml makes of
// pods: k8s_attributes and the transform after it, run under the rights of
// config/kubernetes/agent-rbac.yaml, give the same service.name, uid and owners
// as internal/serviceidentity does. `make build kubernetes` comes first.
package identity
