// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package families // import "github.com/otelcol-gpu/otelcol-gpu/processor/inferenceprocessor/internal/families"

// engines are all that are known. Where the families of a page could be those of
// several, the first counts.
var engines = []*Engine{
	tgi,
	triton,
	llamacpp,
	dynamo,
	llmd,
}

// Engines lists all engines. What it returns must not be changed.
func Engines() []*Engine { return engines }

// ByName finds an engine by the value of inference.engine.
func ByName(name string) (*Engine, bool) {
	for _, e := range engines {
		if e.Name == name {
			return e, true
		}
	}
	return nil, false
}
