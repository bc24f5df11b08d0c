// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

// attacks are all attacks, in the order in which they are played.
var attacks = []attack{
	{"an application uses the names of GPUs", namesOfGPUs},
	{"an application uses the names of GPUs, standalone", namesInStandalone},
	{"an application takes the type of a metric", typeTakeover},
	{"an engine's page speaks for GPUs and redirects", enginePage},
	{"an application sends events of GPUs", eventsOfGPUs},
	{"an application fills the gateway's log", fillGatewayLog},
	{"an application floods the gateway with series", floodGateway},
	{"an application floods standalone with series", floodStandalone},
	{"an application takes the place of GPUs in the store", fillStore},
	{"an application sends bodies that grow when they are unpacked", largeBodies},
	{"a process sends standalone 2 KB that become hundreds of MB", emptyExemplars},
	{"an application fills the agent's log", fillAgentLog},
	{"a memory limiter that refuses silences webhooks", silenceWebhooks},
	{"a web page sends queries and telemetry to a workstation", webPage},
	{"queries take all memory", greedyQueries},
	{"the audit log is rewritten, with the public key", rewrite{key: true}.play},
	{"the audit log is rewritten, with an anchor", rewrite{key: true, anchor: true}.play},
	{"the audit log is rewritten, without a key", rewrite{anchor: true}.play},
	{"audit files are deleted behind a forged line", deletion{key: true}.play},
	{"audit files are deleted behind a forged line, with an anchor", deletion{key: true, anchor: true}.play},
	{"an audit log draws on the terminal", drawOnTerminal},
}
