// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	defaultConsole   = "http://localhost:8480"
	maxConsoleAnswer = 64 << 20 // bytes
	maxConsolePages  = 10_000
	busyTries        = 5
)

// The values of -o.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
)

const (
	consoleLong = `It asks the gpu_console of a running collector. Where that has an authenticator,
the token is read from --token-file, else from the environment variable ` + tokenVariable + `.
- is no data; 0 is zero; "(3 of 4)" after a figure: it is over 3 of 4 devices.
`
	checkedLong = consoleLong + `Exit code: 0 well, 1 with --check where something needs attention, 2 nothing is
known (wrong arguments, no console there, a store that does not answer).`
	watchedLong = consoleLong + `Exit code: 0 well, 2 nothing is known (wrong arguments, no console there, a store
that does not answer).`
)

// consoleClient asks the JSON API of a console.
type consoleClient struct {
	endpoint  string
	tokenFile string
	output    string
	more      []string // outputs beside table and json
	check     bool
	timeout   time.Duration

	base  *url.URL
	token string
	http  http.RoundTripper
}

func (c *consoleClient) flags(f *pflag.FlagSet) {
	f.StringVar(&c.endpoint, "endpoint", defaultConsole, "the console's address, with the path behind which it is")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the token; without it "+tokenVariable+" is read")
	f.StringVarP(&c.output, "output", "o", outputTable, c.outputs())
	f.DurationVar(&c.timeout, "timeout", time.Minute, "how long to wait for everything")
}

// outputs names the values of -o.
func (c *consoleClient) outputs() string {
	return strings.Join(append([]string{outputTable}, c.more...), ", ") + " or " + outputJSON
}

func (c *consoleClient) checkFlag(f *pflag.FlagSet) {
	f.BoolVar(&c.check, "check", false, "exit with 1 where something needs attention")
}

// prepare finds out whom to ask.
func (c *consoleClient) prepare(s streams) error {
	if c.output != outputTable && c.output != outputJSON && !slices.Contains(c.more, c.output) {
		return fmt.Errorf("-o %s is not %s", safetext.Strip(c.output, 20), c.outputs())
	}
	if c.timeout <= 0 {
		return errors.New("--timeout is not longer than 0")
	}
	base, err := url.Parse(c.endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return errors.New("--endpoint is no address as in " + defaultConsole)
	}
	c.base = base
	if c.tokenFile != "" || os.Getenv(tokenVariable) != "" {
		if c.token, err = (&controlClient{tokenFile: c.tokenFile}).token(); err != nil {
			return err
		}
		addr, err := netip.ParseAddr(base.Hostname())
		if base.Scheme == "http" && base.Hostname() != "localhost" && (err != nil || !addr.IsLoopback()) {
			fmt.Fprintln(s.err, "gpuctl: the token travels unencrypted to another machine")
		}
	}
	// The transport itself: it follows no redirect, and the token goes through
	// no proxy.
	c.http = &http.Transport{DisableKeepAlives: true}
	return nil
}

// get asks one endpoint. A console that is busy is asked again.
func (c *consoleClient) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.ask(ctx, http.MethodGet, path, query, nil, into)
}

// post asks an endpoint that changes something.
func (c *consoleClient) post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, path, nil, text, into)
}

func (c *consoleClient) ask(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	for try := 1; ; try++ {
		wait, err := c.once(ctx, method, path, query, body, into)
		if err == nil || wait == 0 || try == busyTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// send asks once.
func (c *consoleClient) send(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Response, error) {
	target := c.base.JoinPath("api", "v1", path)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/csv")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("nothing answers at %s: %w", c.base.Host, err)
	}
	return resp, nil
}

// once returns for how long to wait if asking again may help. An io.Writer gets the answer
// as it is.
func (c *consoleClient) once(ctx context.Context, method, path string, query url.Values, body []byte, into any) (time.Duration, error) {
	resp, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if file, is := into.(io.Writer); is && resp.StatusCode == http.StatusOK {
		if _, err := io.Copy(file, resp.Body); err != nil {
			return 0, fmt.Errorf("%s broke off its answer: %w", c.base.Host, err)
		}
		return 0, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxConsoleAnswer+1))
	if err != nil {
		return 0, fmt.Errorf("%s broke off its answer: %w", c.base.Host, err)
	}
	if len(text) > maxConsoleAnswer {
		return 0, fmt.Errorf("%s answers with more than %d bytes", c.base.Host, maxConsoleAnswer)
	}
	if resp.StatusCode == http.StatusOK {
		if json.Unmarshal(text, into) != nil {
			return 0, fmt.Errorf("%s is no console: its answer is something else", c.base.Host)
		}
		return 0, nil
	}
	var e consoleapi.Error
	if json.Unmarshal(text, &e) != nil || e.Reason == "" {
		return 0, fmt.Errorf("%s is no console: %s", c.base.Host, unexpected(resp))
	}
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && e.Reason == consoleapi.Busy {
		wait = time.Duration(min(max(seconds, 1), 10)) * time.Second
	}
	return wait, &refusal{e.Reason, fmt.Sprintf("%s %s (%s)", safetext.Strip(e.Text, 200), safetext.Strip(e.Detail, 1000), safetext.Strip(string(e.Reason), 50))}
}

// unexpected describes an answer that the asked endpoint does not give. A server with TLS
// answers 400 to a request without.
func unexpected(resp *http.Response) string {
	text := fmt.Sprintf("it answered %d with something else", resp.StatusCode)
	if resp.StatusCode == http.StatusBadRequest && resp.Request.URL.Scheme == "http" {
		text += "; it may speak TLS: use https://"
	}
	return text
}

// refusal is an error that the console answers with.
type refusal struct {
	reason consoleapi.ErrorReason
	text   string
}

func (r *refusal) Error() string { return r.text }

// pages asks for all pages of a list; one reads a page and returns the cursor of
// the next.
func (c *consoleClient) pages(query url.Values, one func(url.Values) (*string, error)) error {
	if query == nil {
		query = url.Values{}
	}
	for range maxConsolePages {
		next, err := one(query)
		if err != nil || next == nil {
			return err
		}
		query.Set("cursor", *next)
	}
	return fmt.Errorf("%s gives more than %d pages", c.base.Host, maxConsolePages)
}

// services are those that match, with what their inference servers report if wanted.
func (c *consoleClient) services(ctx context.Context, q string, inference bool) (*consoleapi.ServicesAnswer, error) {
	all := &consoleapi.ServicesAnswer{Services: []consoleapi.Service{}}
	query := url.Values{}
	if inference {
		query.Set("inference", "true")
	}
	if q != "" {
		query.Set("q", q)
	}
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.ServicesAnswer
		if err := c.get(ctx, "services", query, &page); err != nil {
			return nil, err
		}
		next := page.Next
		page.Services, page.Next = append(all.Services, page.Services...), nil
		*all = page
		return next, nil
	})
}

func (c *consoleClient) nodes(ctx context.Context, q string) (*consoleapi.NodesAnswer, error) {
	all := &consoleapi.NodesAnswer{Nodes: []consoleapi.Node{}}
	query := url.Values{}
	if q != "" {
		query.Set("q", q)
	}
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.NodesAnswer
		if err := c.get(ctx, "nodes", query, &page); err != nil {
			return nil, err
		}
		next := page.Next
		page.Nodes, page.Next = append(all.Nodes, page.Nodes...), nil
		*all = page
		return next, nil
	})
}

// pods are those of a service; none if it ended since it was listed.
func (c *consoleClient) pods(ctx context.Context, of *consoleapi.Service) (*consoleapi.PodsAnswer, error) {
	all := &consoleapi.PodsAnswer{Pods: []consoleapi.Pod{}}
	query := url.Values{"namespace": {of.Namespace}, "service": {of.Service}}
	for parameter, value := range map[string]*string{"cluster": of.Cluster, "slurm_cluster": of.SlurmCluster} {
		if value != nil {
			query.Set(parameter, *value)
		}
	}
	return all, c.pages(query, func(query url.Values) (*string, error) {
		var page consoleapi.PodsAnswer
		if err := c.get(ctx, "pods", query, &page); err != nil {
			if refused := (*refusal)(nil); errors.As(err, &refused) && refused.reason == consoleapi.NotFound {
				return nil, nil
			}
			return nil, err
		}
		next := page.Next
		page.Pods, page.Next = append(all.Pods, page.Pods...), nil
		*all = page
		return next, nil
	})
}

// finish turns what was found into the exit code. That there is no
// current data needs attention more than anything in it.
func (c *consoleClient) finish(f consoleapi.Freshness, attention bool) error {
	if c.check && (attention || f.Stale || f.DataAge == nil) {
		return errFailed
	}
	return nil
}

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
