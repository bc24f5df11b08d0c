// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
)

// event is an event of a device as an agent sends it to the gateway.
func event(id string) ([]byte, error) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	for k, v := range identity {
		rl.Resource().Attributes().PutStr(k, v)
	}
	r := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetEventName("gpu.xid")
	r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	r.SetSeverityNumber(plog.SeverityNumberFatal)
	r.Body().SetStr("XID 79")
	r.Attributes().PutStr("gpu.event.id", id)
	r.Attributes().PutStr("gpu.event.key", "gpu.xid/"+id)
	r.Attributes().PutStr("gpu.event.state", "raised")
	return plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
}

// silenceWebhooks gives the gateway less memory than it has taken already, so
// that its memory limiter refuses everything, and sends an agent's event.
func silenceWebhooks(ctx context.Context, l *lab) ([]string, error) {
	sink, more, err := l.webhookTo(nil)
	if err != nil {
		return nil, err
	}
	more["processors"] = m{"memory_limiter": m{"limit_mib": 2, "spike_limit_mib": 1}}
	g, err := l.gateway(ctx, more)
	if err != nil {
		return nil, err
	}
	// The control: telemetry is refused.
	if err := until(ctx, "the memory limiter refuses", func() (bool, error) {
		status, err := post(ctx, g.ports.http, "metrics", request(identity, metric{name: "hw.gpu.utilization"}), nil)
		return err == nil && status == http.StatusServiceUnavailable, err
	}); err != nil {
		return nil, err
	}
	body, err := event("0195-silenced")
	if err != nil {
		return nil, err
	}
	status, err := post(ctx, g.ports.http, "logs", body, nil)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "the event at the webhook", func() (bool, error) { return delivered(sink, "0195-silenced") == 1, nil }); err != nil {
		return []string{fmt.Sprintf("an event of a device does not leave the gateway, which answered its agent %d", status)}, nil
	}
	return nil, nil
}

// webPage is a page elsewhere in the browser of a user who runs standalone on
// a workstation: by its own origin, and by a name of its own that resolves to
// loopback.
func webPage(ctx context.Context, l *lab) ([]string, error) {
	s, _, err := l.standalone(ctx, nil)
	if err != nil {
		return nil, err
	}
	const query = "/api/v1/query?query=up"
	targets := map[string]string{"the store": at(s.ports.store, query), "the console": at(s.ports.console, "/api/v1/services")}
	asked := func(url string, headers map[string]string) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		for k, v := range headers {
			if k == "Host" {
				req.Host = v
			} else {
				req.Header.Set(k, v)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	hostile := []map[string]string{
		{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
		{"Sec-Fetch-Site": "cross-site"},
		{"Origin": "https://evil.example"},
		{"Host": "evil.example", "Origin": "http://evil.example"},
	}
	var achieved []string
	for name, url := range targets {
		if status, err := asked(url, nil); err != nil || status != http.StatusOK {
			return nil, errors.Join(err, fmt.Errorf("%s answers its user with %d", name, status))
		}
		for _, headers := range hostile {
			if status, err := asked(url, headers); err != nil {
				return nil, err
			} else if status < 400 {
				achieved = append(achieved, fmt.Sprintf("%s answers a page elsewhere (%v) with %d", name, headers, status))
			}
		}
	}
	// The control for OTLP: a program of this machine is taken, or the port is closed.
	if status, err := post(ctx, s.ports.http, "metrics", request(nil, honest), nil); err == nil {
		if status != http.StatusOK {
			return nil, fmt.Errorf("OTLP answers a program of this machine with %d", status)
		}
		for _, headers := range hostile {
			headers["Content-Type"] = "application/json"
			if status, err := post(ctx, s.ports.http, "metrics", []byte(`{"resourceMetrics":[]}`), headers); err == nil && status < 400 {
				achieved = append(achieved, fmt.Sprintf("OTLP takes telemetry of a page elsewhere (%v): %d", headers, status))
			}
		}
	}
	return achieved, nil
}

// greedyQueries runs five queries at once over every series and many steps, and
// reads the answers as slowly as it can.
func greedyQueries(ctx context.Context, l *lab) ([]string, error) {
	s, _, err := l.standalone(ctx, nil)
	if err != nil {
		return nil, err
	}
	now := time.Now().Unix()
	url := at(s.ports.store, fmt.Sprintf(`/api/v1/query_range?query=%%7B__name__%%3D~%%22.%%2B%%22%%7D%%20%%40%%20end()&start=%d&end=%d&step=1.2`, now-10_900, now))
	answers := make(chan error, 5)
	for range cap(answers) {
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			if err != nil {
				answers <- err
				return
			}
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				defer resp.Body.Close()
				_ = sleep(ctx, 3*time.Second) // a slow reader
			}
			answers <- err
		}()
	}
	answered := 0
	var errs []error
	for range cap(answers) {
		if err := <-answers; err == nil {
			answered++
		} else {
			errs = append(errs, err)
		}
	}
	achieved := s.overMiB(standaloneMiB)
	if answered == 0 && len(achieved) == 0 {
		return nil, fmt.Errorf("no query was answered: %w", errors.Join(errs...))
	}
	return append(achieved, s.blind(ctx)...), nil
}

// delivered counts the requests that a webhook got about an event.
func delivered(sink *webhook.Sink, id string) (n int) {
	for _, r := range sink.Received() {
		if strings.Contains(r.Body, id) {
			n++
		}
	}
	return n
}
