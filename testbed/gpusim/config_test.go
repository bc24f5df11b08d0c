// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/internal/pagetest"
)

func TestDemoSurvivesJSON(t *testing.T) {
	b, err := json.Marshal(Demo(DemoTimes()))
	require.NoError(t, err)
	cfg, err := ReadConfig(bytes.NewReader(b))
	require.NoError(t, err)
	assert.Equal(t, Demo(DemoTimes()), cfg)
}

func TestErrorsOfConfigurations(t *testing.T) {
	node := `{"nodes":[{"name":"n","version":"4.5","model":"A100-SXM4-40GB","devices":2,%s}]}`
	with := func(s string) string { return strings.Replace(node, "%s", s, 1) }
	for _, tc := range []struct{ in, want string }{
		{`{`, "unexpected EOF"},
		{`{"nodes":[]} {}`, "more than one JSON value"},
		{`{"nodes":[]}`, "nodes: at least one"},
		{`{"nodez":[]}`, `unknown field "nodez"`},
		{`{"nodes":[{"version":"4.5"}]}`, "nodes[0].name"},
		{`{"nodes":[{"name":"n","version":"9.9"}]}`, "use one of 1.7, 2.1, 2.4, 3.0, 3.3, 4.5, 4.6, 4.9"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"RTX","devices":1}]}`, "use one of T4, L4"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":9}]}`, "9 is not between 1 and 8"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":-5}]}`, "-5 is not between 1 and 8"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":1,"mig":{"0":["1g.5gb"]}}]}`, "T4 has no MIG"},
		{with(`"fields":"some"`), "neither default nor all"},
		{with(`"mig":{"2":["1g.5gb"]}`), `"2" is not the index of a device`},
		{with(`"mig":{"0":["1g.9gb"]}`), "use 1g.5gb, 1g.10gb, 2g.10gb"},
		{with(`"mig":{"0":["4g.20gb","4g.20gb"]}`), "does not fit"},
		{with(`"pods":[{"namespace":"a","name":"p","devices":["0"],"load":"gaming"}]`), `load "gaming" is not`},
		{with(`"pods":[{"namespace":"a","name":"p","devices":[],"load":"idle"}]`), "devices must not be empty"},
		{with(`"pods":[{"name":"p","devices":["0"],"load":"idle"}]`), "needs namespace and name"},
		{with(`"pods":[{"namespace":"a","name":"p","devices":["0:0"],"load":"idle"}]`), "no MIG instance at position 0"},
		{with(`"mig":{"0":["1g.5gb"]},"pods":[{"namespace":"a","name":"p","devices":["0"],"load":"idle"}]`), "is in MIG mode: name an instance, as 0:0"},
		{with(`"pods":[{"namespace":"a","name":"p","devices":["0"],"load":"idle"},{"namespace":"a","name":"q","devices":["0"],"load":"idle"}]`), "held by p already"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":1}],"faults":[{"node":"n","kind":"xid"}]}`, "faults[0]: fault: xid needs a code"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":1}],"faults":[{"node":"n","kind":"exporter_twice"}]}`, "cannot listen on port 0"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":1}],"faults":[{"node":"n","kind":"index_change"}]}`, "needs one whole device"},
		{`{"nodes":[{"name":"n","version":"4.5","model":"T4","devices":1}],"faults":[{"node":"n","kind":"mig_reprofile"}]}`, "needs the device of a MIG instance"},
	} {
		cfg, err := ReadConfig(strings.NewReader(tc.in))
		if err == nil {
			_, err = New(cfg, pagetest.NewClock().Now)
		}
		assert.ErrorContains(t, err, tc.want, tc.in)
	}
}

func TestServiceOfAPod(t *testing.T) {
	p := Pod{Name: "p-1", Labels: map[string]string{"app": "a", "app.kubernetes.io/name": "b", "app.kubernetes.io/instance": "c"}}
	for _, want := range []struct{ name, drop string }{{"c", "app.kubernetes.io/instance"}, {"b", "app.kubernetes.io/name"}, {"a", "app"}, {"p-1", ""}} {
		assert.Equal(t, want.name, p.Service())
		delete(p.Labels, want.drop)
	}
}

// A configuration is refused, or it makes pages.
func FuzzConfig(f *testing.F) {
	b, err := json.Marshal(Demo(DemoTimes()))
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"nodes":[{"name":"n","version":"2.1","model":"T4","devices":1}]}`))
	f.Add([]byte(`{"nodes":[{"name":"n","version":"4.6","models":["T4","H100"],"mig":{"1":["7g.80gb"]},"pods":[{"namespace":"a","name":"p","devices":["1:0"],"load":"training","start":"1h"}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		cfg, err := ReadConfig(bytes.NewReader(in))
		if err != nil {
			return
		}
		fl, err := New(cfg, pagetest.NewClock().Now)
		if err != nil {
			return
		}
		for _, n := range fl.Nodes() {
			_, err := fl.Page(n, pagetest.Epoch.Add(3*time.Second))
			require.NoError(t, err)
		}
		fl.TruthAt(pagetest.Epoch.Add(3 * time.Second))
	})
}
