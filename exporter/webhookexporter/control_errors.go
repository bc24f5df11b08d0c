// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package webhookexporter // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter"

import "errors"

var (
	errNoReceiver = errors.New("there is no receiver of that name")
	errNoEvent    = errors.New("no event of that id is kept: it is older than the last replay_events, or no receiver wanted it")
	errNobody     = errors.New("no receiver wants this event; name one to send it nevertheless")
)
