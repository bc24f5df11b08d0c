// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package remedies has what to do about a webhook that was not delivered.
package remedies // import "github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/remedies"

import "github.com/otelcol-gpu/otelcol-gpu/internal/audit"

var byError = map[audit.ErrorType]string{
	audit.ErrorDNS:         "its host has no address here: check the URL, and the cluster's DNS",
	audit.ErrorConnect:     "nothing answers there, or the proxy refuses: check the URL and the way out (NetworkPolicy, firewall, proxy_url)",
	audit.ErrorTLS:         "its certificate is not trusted or not valid for this name: add your authority to the system's (SSL_CERT_FILE)",
	audit.ErrorTimeout:     "no answer within the receiver's timeout: a firewall drops what is sent, proxy_url is needed, or the receiver is slow (receivers::NAME::timeout)",
	audit.ErrorSSRFBlocked: "its address is closed by default (private, loopback, link-local, metadata, or a port outside allow_ports): if it is yours, add its range to allow_cidrs",
	audit.ErrorRedirect:    "redirects are not followed: set the URL that it redirects to",
	audit.ErrorHTTP4xx:     "it refuses the request: check URL, format and keys; 401 and 403 are credentials, 404 the path, 400 the format",
	audit.ErrorHTTP5xx:     "the receiver fails: its own log has the reason; with retry enabled it is tried again",
	audit.ErrorRateLimited: "it asks for fewer requests: set events or min_severity, or group_wait where the format allows it",
	audit.ErrorGone:        "it answered 410 Gone: if that was a mistake, gpuctl webhook enable RECEIVER; else give it its new URL, or take it out",
	audit.ErrorQueueFull:   "too many deliveries wait for it: see why it is slow; then raise receivers::NAME::queue_size or workers",
	audit.ErrorShutdown:    "the collector ended in the middle: ask again when it runs",
	audit.ErrorInterrupted: "the collector was killed in the middle: it is tried again where retry is enabled",
	audit.ErrorConfig:      "correct the receiver's configuration",
}

// Of is what to do about the error; empty where there is none.
func Of(why audit.ErrorType) string { return byError[why] }
