// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/store/storetest"
)

func TestParametersThatAreRefused(t *testing.T) {
	w := newWorld(t)
	c := serveAPI(t, w.store, w.now, func(c *Config) { c.MaxServicesPerRequest = 20 })
	service := values("namespace", "ml", "service", "chat")
	with := func(base url.Values, pairs ...string) url.Values {
		v := values(pairs...)
		for k, all := range base {
			v[k] = all
		}
		return v
	}
	long := strings.Repeat("é", 254)
	for _, test := range []struct {
		path   string
		query  url.Values
		reason consoleapi.ErrorReason
		detail string
	}{
		{"services", values("limit", "0"), consoleapi.InvalidParameter, "limit"},
		{"services", values("limit", "-1"), consoleapi.InvalidParameter, "1 to 20"},
		{"services", values("limit", "1e2"), consoleapi.InvalidParameter, "limit"},
		{"services", values("limit", ""), consoleapi.InvalidParameter, "limit"},
		{"services", values("limit", "21"), consoleapi.LimitExceeded, "20"},
		{"services", values("limit", "501"), consoleapi.LimitExceeded, "max_services_per_request"},
		{"services", values("limit", strings.Repeat("9", 400)), consoleapi.LimitExceeded, "20"},
		{"services", values("cursor", "!"), consoleapi.InvalidParameter, "cursor"},
		{"services", values("cursor", strings.Repeat("A", 3000)), consoleapi.InvalidParameter, "2048"},
		{"services", values("trend", "yes"), consoleapi.InvalidParameter, "true, false"},
		{"services", values("trend", ""), consoleapi.InvalidParameter, "trend"},
		{"services", values("q", long), consoleapi.InvalidParameter, "253"},
		{"services", values("Limit", "1"), consoleapi.InvalidParameter, `"Limit"`},
		{"services", url.Values{"q": {"a", "b"}}, consoleapi.InvalidParameter, "more than once"},
		{"services", values("q", "a\xff"), consoleapi.InvalidParameter, "UTF-8"},
		{"status", values("x", "1"), consoleapi.InvalidParameter, "not known"},
		{"service", values("namespace", "ml"), consoleapi.InvalidParameter, "service is missing"},
		{"service", values("service", "chat", "namespace", ""), consoleapi.InvalidParameter, "namespace is missing"},
		{"service", with(service, "cluster", long), consoleapi.InvalidParameter, "cluster"},
		{"pods", with(service, "limit", "99999999999999999999"), consoleapi.LimitExceeded, "20"},
		{"nodes", values("limit", "x"), consoleapi.InvalidParameter, "limit"},
		{"range", service, consoleapi.InvalidParameter, "window"},
		{"range", with(service, "window", "7d"), consoleapi.InvalidParameter, "5m, 30m, 1h, 24h"},
		{"range", with(service, "window", "-5m"), consoleapi.InvalidParameter, "window"},
		{"range", with(service, "window", "5m", "by", "node"), consoleapi.InvalidParameter, "service, pod"},
		{"range", with(service, "window", "5m", "step", "1ms"), consoleapi.InvalidParameter, "step"},
		{"services", values("trend", "true", "window", "7d"), consoleapi.InvalidParameter, "5m, 30m, 1h, 24h"},
		{"device_range", values("window", "5m", "cluster", "c1"), consoleapi.InvalidParameter, "node is missing"},
		{"device_range", values("device", "GPU-1"), consoleapi.InvalidParameter, "window"},
		{"device_range", values("device", long, "window", "5m"), consoleapi.InvalidParameter, "253"},
		{"nodes", values("cluster", "c1"), consoleapi.InvalidParameter, "node is missing"},
		{"events", values("slurm_cluster", "hpc"), consoleapi.InvalidParameter, "namespace is missing"},
		{"events", values("cluster", "c1", "namespace", "ml"), consoleapi.InvalidParameter, "service is missing"},
		{"events", values("min_severity", "bad"), consoleapi.InvalidParameter, "min_severity"},
		{"events", values("cluster", "c1"), consoleapi.InvalidParameter, "namespace is missing"},
		{"events", values("name", strings.Repeat("n", 129)), consoleapi.InvalidParameter, "128"},
	} {
		got := c.get(test.path, test.query)
		assert.Equal(t, http.StatusBadRequest, got.status, "%s?%s", test.path, test.query.Encode())
		var e consoleapi.Error
		require.NoError(t, json.Unmarshal(got.body, &e))
		assert.Equal(t, test.reason, e.Reason, e.Detail)
		assert.Contains(t, e.Detail, test.detail)
		assert.Less(t, len(e.Detail), 400, "what was sent is not sent back at length")
	}
}

// Names that were chosen to do harm are names, in questions and in answers.
func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range storetest.Hostile {
		w.service(svc{cluster: name, namespace: name, name: name, pods: pods{reporting: 1, missing: 1}, figures: averages(0.5), states: map[string]string{name: "missing"}})
		w.gpu(gpu{tags: device(name, name, 0, held(name, name, name)).with(tags{"k8s_cluster_name": name}), values: busy(0.5)})
	}
	c := serveAPI(t, w.store, w.now, nil)
	all := ok[consoleapi.ServicesAnswer](c, "services", values("trend", "true"))
	assert.Equal(t, len(storetest.Hostile), all.Total)
	for _, s := range all.Services {
		assert.Equal(t, 0.5, *s.Trend[30], s.Service)
	}
	nodes := ok[consoleapi.NodesAnswer](c, "nodes", nil)
	assert.Equal(t, len(storetest.Hostile), nodes.Total)
	for kind, name := range storetest.Hostile {
		query := values("cluster", name, "namespace", name, "service", name)
		one := ok[consoleapi.ServiceAnswer](c, "service", query)
		assert.Equal(t, name, one.Service.Service, kind)
		assert.Equal(t, []string{name}, one.MissingPods)
		pods := ok[consoleapi.PodsAnswer](c, "pods", query)
		require.Len(t, pods.Pods, 1, kind)
		assert.Equal(t, name, pods.Pods[0].Pod)
		assert.Equal(t, 0.5, *pods.Pods[0].Values.Utilization)
		query.Set("window", "5m")
		assert.Equal(t, name, ok[consoleapi.RangeAnswer](c, "range", query).Charts.Utilization.Series[0].Name)
		query.Set("by", "pod")
		assert.Equal(t, name, ok[consoleapi.RangeAnswer](c, "range", query).Charts.Power.Series[0].Name)
		assert.Equal(t, 1, ok[consoleapi.ServicesAnswer](c, "services", values("q", name)).Total, kind)
	}
	for kind, name := range storetest.Hostile {
		lines := ok[consoleapi.DeviceRangeAnswer](c, "device_range", values("cluster", name, "node", name, "device", name, "window", "5m"))
		assert.Equal(t, name, lines.Charts.Utilization.Series[0].Name, kind)
		assert.Equal(t, 0.5, *lines.Charts.Utilization.Series[0].Values[lines.Points-1], kind)
		assert.Equal(t, 1, ok[consoleapi.NodesAnswer](c, "nodes", values("cluster", name, "device", name)).Total, kind)
	}
	assert.NotContains(t, string(c.get("services", nil).body), "<script", "HTML is escaped even within JSON")
}

// All services are on one page or another, once, whatever the size of pages.
func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := range 23 {
		w.service(svc{namespace: "ml", name: "s" + strconv.Itoa(i), pods: pods{reporting: 1, missing: i % 2}, from: time.Minute})
	}
	c := serveAPI(t, w.store, w.now, nil)
	for _, limit := range []int{1, 7, 23, 100} {
		seen := map[string]int{}
		query := values("limit", strconv.Itoa(limit))
		for pages := 0; ; pages++ {
			require.Less(t, pages, 24)
			got := ok[consoleapi.ServicesAnswer](c, "services", query)
			assert.Equal(t, 23, got.Total)
			assert.LessOrEqual(t, len(got.Services), limit)
			for _, s := range got.Services {
				seen[s.Service]++
			}
			if got.Next == nil {
				break
			}
			query.Set("cursor", *got.Next)
		}
		assert.Len(t, seen, 23)
		for name, n := range seen {
			assert.Equal(t, 1, n, name)
		}
	}
	assert.Len(t, ok[consoleapi.ServicesAnswer](serveAPI(t, w.store, w.now, func(c *Config) { c.MaxServicesPerRequest = 5 }), "services", nil).Services, 5)
	beyond := cursor{place: 4_000_000_000, item: 1}.String()
	assert.Empty(t, ok[consoleapi.ServicesAnswer](c, "services", values("cursor", beyond)).Services)
}

func FuzzParameters(f *testing.F) {
	for _, s := range []string{"", "limit=5&cursor=", "limit=-1", "limit=99999999999999999999", "cursor=AQAAAAAAAAAAAAAAAAA", "a=%zz", "q=%00&q=1", "namespace=a;service=b", "window=24h&by=pod", "limit=+5", "limit=٣", "by=row&format=focus&since=4w", "from=2026-03-04&to=2026-03-05T00:00:00Z&step=day&top=50", "since=9999w&share_unheld=proportional&tenant="} {
		f.Add(s, 100)
	}
	f.Fuzz(func(t *testing.T, raw string, most int) {
		most = 1 + max(0, most)%mostServices
		if cost := parse(raw, costParameters...); cost.err == nil {
			q := cost.cost(costNow)
			if cost.err == nil {
				require.NoError(t, q.Check())
				require.True(t, q.From.Before(q.To))
				require.Regexp(t, `^[A-Za-z0-9-]+\.csv$`, fileName("gpu-cost-by-"+string(q.By), &q.Options))
			} else {
				require.Less(t, len(failed(cost.err).body.Detail), 500)
			}
		}
		p := parse(raw, "limit", "cursor", "q", "cluster", "namespace", "service", "window")
		limit, after := p.limit(most), p.cursor()
		key := p.key()
		if p.err != nil {
			f := failed(p.err)
			require.Equal(t, http.StatusBadRequest, f.status)
			require.Less(t, len(f.body.Detail), 500)
			return
		}
		require.NotEmpty(t, key.Namespace)
		require.GreaterOrEqual(t, limit, 1)
		require.LessOrEqual(t, limit, most)
		page := pageOf(after, limit, 10, strconv.Itoa)
		require.LessOrEqual(t, page.from, page.to)
		require.LessOrEqual(t, page.to, 10)
		if after != nil {
			again := parse("cursor="+after.String(), "cursor")
			require.Equal(t, after, again.cursor())
		}
	})
}
