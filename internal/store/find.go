// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package store // import "github.com/otelcol-gpu/otelcol-gpu/internal/store"

import (
	"fmt"

	"go.opentelemetry.io/collector/component"
)

// DefaultID is the id of a gpu_store extension without a name.
var DefaultID = component.MustNewID("gpu_store")

// Find returns the gpu_store extension of that id. key is the configuration key
// that names it, for the message.
func Find(host component.Host, key string, id component.ID) (Store, error) {
	extension, found := host.GetExtensions()[id]
	if !found {
		return nil, fmt.Errorf("%s: there is no extension %q; configure it under extensions: and name it in service::extensions", key, id)
	}
	s, ok := extension.(Store)
	if !ok {
		return nil, fmt.Errorf("%s: the extension %q is no gpu_store", key, id)
	}
	return s, nil
}
