// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CycloneDX' own library reads what internal/sbom writes of the collector.
func TestBillOfMaterials(t *testing.T) {
	made := exec.Command("go", "run", "./internal/sbom", "-version", "0.1.0", "-web", "extension/gpuconsoleextension/web", "bin/otelcol-gpu")
	made.Dir = root
	var stderr bytes.Buffer
	made.Stderr = &stderr
	text, err := made.Output()
	require.NoError(t, err, stderr.String())
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	assert.Equal(t, cyclonedx.BOMFormat, bom.BOMFormat)
	assert.Equal(t, cyclonedx.SpecVersion1_6, bom.SpecVersion)
	assert.Equal(t, cyclonedx.ComponentTypeApplication, bom.Metadata.Component.Type)
	versions := map[string]string{}
	for _, c := range *bom.Components {
		versions[c.Name] = c.Version
		if assert.NotNil(t, c.Licenses, c.Name) {
			assert.NotEmpty(t, *c.Licenses, c.Name)
		}
	}
	assert.Greater(t, len(versions), 100)
	const otlp = "go.opentelemetry.io/collector/receiver/otlpreceiver"
	assert.Contains(t, read(t, "builder-config.yaml"), "- gomod: "+otlp+" "+versions[otlp]+"\n")
	assert.NotEmpty(t, versions["stdlib"])
	assert.NotEmpty(t, versions["uplot"])
	assert.NotContains(t, versions, "github.com/otelcol-gpu/otelcol-gpu", "it is the application itself")
}

// The helper's bill is short, and has what loads the driver's library with its license.
func TestBillOfMaterialsOfTheHelper(t *testing.T) {
	made := exec.Command("go", "run", "./internal/sbom", "-version", "0.1.0", "bin/otelcol-gpu-nvml")
	made.Dir = root
	text, err := made.Output()
	require.NoError(t, err)
	var bom cyclonedx.BOM
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom))
	found := map[string]string{}
	for _, c := range *bom.Components {
		require.NotNil(t, c.Licenses, c.Name)
		found[c.Name] = (*c.Licenses)[0].License.ID
	}
	assert.Equal(t, map[string]string{"github.com/ebitengine/purego": "Apache-2.0", "stdlib": "BSD-3-Clause"}, found)
}
