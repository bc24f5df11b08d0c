// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import "errors"

func hangUp() error {
	return errors.New("this system has no signal upon which a Collector reads its configuration again")
}
