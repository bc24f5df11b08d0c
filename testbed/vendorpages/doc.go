// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package vendorpages puts simulated pages of AMD's, Gaudi's and Intel's exporters through
// the real receivers, and compares every device and value with what the simulator knows;
// and it joins owners by the kubelet, sysfs and the exporters' labels.
package vendorpages
