// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package configkeys

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

type config struct {
	Squashed  `mapstructure:",squash"`
	Interval  time.Duration       `mapstructure:"interval"`
	Endpoints []string            `mapstructure:"endpoints"`
	Storage   *component.ID       `mapstructure:"storage"`
	Receivers map[string]receiver `mapstructure:"receivers"`
	List      []receiver          `mapstructure:"list"`
	Own       own                 `mapstructure:"own"`
	Most      int                 `mapstructure:"most"`
	Share     *float64            `mapstructure:"share"`
	On        bool                `mapstructure:"on"`
}

type Squashed struct {
	Wait *time.Duration `mapstructure:"wait"`
}

type receiver struct {
	URL     configopaque.String `mapstructure:"url"`
	Timeout time.Duration       `mapstructure:"timeout"`
}

// own reads itself, whatever its keys are.
type own map[string]any

func (o *own) Unmarshal(conf *confmap.Conf) error {
	*o = conf.ToStringMap()
	return nil
}

func (c *config) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, c) }

func TestUnmarshal(t *testing.T) {
	for name, test := range map[string]struct {
		yaml string
		want []string // what the error has; none: it is read
	}{
		"all of it": {yaml: `
interval: 15s
wait: 0
endpoints: [a]
storage: file_storage/a
receivers: {a: {url: https://secret, timeout: 1m}, b: }
list: [{timeout: 1s}]
own: {timeout: 45, whatever: {there: is}}
most: 5
share: 1
on: true`},
		"empty":                 {yaml: ``},
		"capitals":              {"Interval: 1s", []string{"Interval: there is no such key: did you mean interval?"}},
		"a number":              {"interval: 45", []string{"interval: 45 has no unit: write 45s"}},
		"a fraction":            {"interval: 0.5", []string{"interval: 0.5 has no unit: write 0.5s"}},
		"negative":              {"interval: -1", []string{"interval: -1 has no unit"}},
		"squashed, a pointer":   {"wait: 10", []string{"wait: 10 has no unit"}},
		"in a map":              {"receivers: {a: {timeout: 30}}", []string{"receivers::a::timeout: 30 has no unit"}},
		"in a list":             {"list: [{timeout: 1s}, {timeout: 30}]", []string{"list::1::timeout: 30 has no unit"}},
		"a long unit":           {"interval: 15sec", []string{`interval: "15sec" is no duration: write 15s`}},
		"minutes":               {"interval: 5min", []string{`interval: "5min" is no duration: write 5m`}},
		"days":                  {"interval: 30d", []string{`interval: "30d" is no duration: days and weeks are written in hours, here 720h`}},
		"no number":             {"interval: soon", []string{`interval: "soon" is no duration: write a number and its unit (ms, s, m or h), as 15s`}},
		"a quoted number":       {`interval: "45"`, []string{`interval: "45" is no duration`}},
		"nothing between marks": {`interval: ""`, []string{`interval: "" is no duration`}},
		"a list for a duration": {"interval: [1s]", []string{"interval: is a list, where a duration belongs"}},
		"a key that is near":    {"endpoint: a", []string{"endpoint: there is no such key: did you mean endpoints?"}},
		"a key that is far":     {"bananas: a", []string{"bananas: there is no such key: use endpoints, interval, list, most, on, own, receivers, share, storage, wait"}},
		"a key below":           {"receivers: {a: {uri: https://secret}}", []string{"receivers::a::uri: there is no such key: did you mean url?"}},
		"a key cut short":       {"recei: {}", []string{"recei: there is no such key: did you mean receivers?"}},
		"a key beside":          {"receivers: {a: {wait: 3s}}", []string{"receivers::a::wait: there is no such key: wait belongs beside receivers, not below it: move it there"}},
		"a value for keys":      {"receivers: {a: https://secret}", []string{"receivers::a: is a single value, where keys and values belong"}},
		"a list for keys":       {"receivers: [a]", []string{"receivers: is a list, where keys and values belong"}},
		"a number for text":     {"receivers: {a: {url: 2.95}}", []string{`receivers::a::url: is a number, where text belongs: write it in quotes, as "2.95"`}},
		"a date for text":       {"endpoints: [!!timestamp 2026-05-01]", []string{`endpoints::0: is a date, where text belongs: write it in quotes, as "2026-05-01"`}},
		"a truth for text":      {"endpoints: [a, yes, true]", []string{`endpoints::2: is true or false, where text belongs`}},
		"a word for a number":   {"most: lots", []string{`most: "lots" is no number: write one, as 10, here or in the environment variable that it is taken from`}},
		"a percentage":          {"share: 5%", []string{`share: "5%" is no number: write 0.05`}},
		"a percentage of pods":  {"most: 5%", []string{`most: "5%" is no number: write one, as 10`}},
		"a quoted count":        {`most: "5"`, []string{`most: "5" is text: write the number without quotes`}},
		"a list for a number":   {"most: [5]", []string{"most: a list is no number"}},
		"a word for a truth":    {"on: maybe", []string{`on: "maybe" is neither true nor false`}},
		"several at once":       {"{interval: 45, endpoint: a, wait: 3}", []string{"interval: 45", "endpoint: there", "wait: 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			var values map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(test.yaml), &values))
			err := confmap.NewFromStringMap(values).Unmarshal(&config{})
			if len(test.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "configkeys.", "a user knows no Go types")
		})
	}
}

func TestNearest(t *testing.T) {
	names := []string{"gpu.xid", "gpu.throttle", "gpu.service.partial"}
	for written, want := range map[string]string{"gpu.xidd": "gpu.xid", "GPU.XID": "gpu.xid", "gpu:xid": "gpu.xid", "gpu.servce.partial": "gpu.service.partial", "cpu.load": "", "": ""} {
		assert.Equal(t, want, Nearest(written, names), written)
	}
}
