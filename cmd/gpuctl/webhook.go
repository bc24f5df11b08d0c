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
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/remedies"
	"github.com/otelcol-gpu/otelcol-gpu/internal/audit"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const (
	tokenVariable      = "OTELCOL_GPU_TOKEN"
	defaultControl     = "http://localhost:8481"
	maxControlAnswer   = 8 << 20 // bytes
	maxToken           = 4096
	defaultControlWait = 3 * time.Minute // the exporter waits 2 for the first attempt
)

// newWebhook is what asks a running collector to send webhooks.
func newWebhook() *command {
	return &command{
		name:  "webhook",
		short: "asks the running collector to send a webhook, or to enable a receiver again",
		subcommands: []*command{
			newWebhookTest(),
			newWebhookReplay(),
			newWebhookEnable(),
		},
	}
}

const webhookLong = `The webhook exporter needs control_endpoint and control_token. The token is read
from --token-file, else from the environment variable ` + tokenVariable + `.
Exit code: 0 delivered or enabled, 1 not delivered, 2 nothing was asked for (wrong arguments,
no answer, a token that is not valid).`

func newWebhookTest() *command {
	var c controlClient
	return &command{
		name:  "test",
		args:  "RECEIVER [--endpoint URL] [--token-file FILE] [-o json]",
		short: "sends a test event to a receiver",
		long:  webhookLong,
		flags: c.flags,
		run: func(ctx context.Context, s streams, args []string) error {
			if len(args) != 1 {
				return errors.New("name one receiver")
			}
			return c.ask(ctx, s, "/v1/webhook/test", map[string]string{"receiver": args[0]})
		},
	}
}

func newWebhookReplay() *command {
	var c controlClient
	var receiver string
	return &command{
		name:  "replay",
		args:  "EVENT-ID [--receiver RECEIVER] [--endpoint URL] [--token-file FILE] [-o json]",
		short: "sends a stored event again, marked as a replay",
		long:  "Without --receiver it goes to every receiver that wants it.\n" + webhookLong,
		flags: func(f *pflag.FlagSet) {
			c.flags(f)
			f.StringVar(&receiver, "receiver", "", "the receiver to send it to, whether it wants it or not")
		},
		run: func(ctx context.Context, s streams, args []string) error {
			if len(args) != 1 {
				return errors.New("name one event by its id")
			}
			return c.ask(ctx, s, "/v1/webhook/replay", map[string]string{"event_id": args[0], "receiver": receiver})
		},
	}
}

func newWebhookEnable() *command {
	var c controlClient
	return &command{
		name:  "enable",
		args:  "RECEIVER [--endpoint URL] [--token-file FILE] [-o json]",
		short: "gives a receiver that answered 410 Gone deliveries again",
		long: `It sends nothing: gpuctl webhook test RECEIVER does. The audit log records it.
` + webhookLong,
		flags: c.flags,
		run: func(ctx context.Context, s streams, args []string) error {
			if len(args) != 1 {
				return errors.New("name one receiver")
			}
			return c.ask(ctx, s, "/v1/webhook/enable", map[string]string{"receiver": args[0]})
		},
	}
}

// controlClient asks a control endpoint.
type controlClient struct {
	endpoint  string
	tokenFile string
	output    string
	timeout   time.Duration
}

func (c *controlClient) flags(f *pflag.FlagSet) {
	f.StringVar(&c.endpoint, "endpoint", defaultControl, "the exporter's control_endpoint")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the token; without it "+tokenVariable+" is read")
	f.StringVarP(&c.output, "output", "o", "text", "text or json")
	f.DurationVar(&c.timeout, "timeout", defaultControlWait, "how long to wait for the answer")
}

// controlAnswer is the endpoint's answer, as far as it is shown.
type controlAnswer struct {
	Error *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"error"`
	Enabled bool            `json:"enabled"`
	Records []controlRecord `json:"records"`
}

type controlRecord struct {
	Receiver     string    `json:"receiver"`
	Attempt      int       `json:"attempt"`
	MaxAttempts  int       `json:"max_attempts"`
	Trigger      string    `json:"trigger"`
	Outcome      string    `json:"outcome"`
	Status       int       `json:"status"`
	ErrorType    string    `json:"error.type"`
	NextAttempt  time.Time `json:"next_attempt"`
	TotalSeconds float64   `json:"total_seconds"`
	ID           string    `json:"id"`
}

// ask posts the request and shows the answer. It returns errFailed where something
// was not delivered.
func (c *controlClient) ask(ctx context.Context, s streams, path string, request map[string]string) error {
	if c.output != "text" && c.output != "json" {
		return fmt.Errorf("-o %s is not text or json", safetext.Strip(c.output, 20))
	}
	base, err := c.base(s)
	if err != nil {
		return err
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	// The transport itself: it follows no redirect, and the token goes through
	// no proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("nothing answers at %s: %w", base.Host, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxControlAnswer))
	if err != nil {
		return fmt.Errorf("%s broke off its answer: %w", base.Host, err)
	}
	var answer controlAnswer
	if json.Unmarshal(text, &answer) != nil || answer.Error == nil && len(answer.Records) == 0 && !answer.Enabled {
		return fmt.Errorf("%s is no control endpoint: %s", base.Host, unexpected(resp))
	}
	if answer.Enabled && len(answer.Records) == 0 && c.output == "text" {
		_, err := fmt.Fprintf(s.out, "%s: was enabled already\n", safetext.Strip(request["receiver"], 63))
		return err
	}
	return c.show(s, resp.StatusCode, text, answer)
}

func (c *controlClient) base(s streams) (*url.URL, error) {
	base, err := url.Parse(c.endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, errors.New("--endpoint is no address as in " + defaultControl)
	}
	addr, err := netip.ParseAddr(base.Hostname())
	if base.Scheme == "http" && base.Hostname() != "localhost" && (err != nil || !addr.IsLoopback()) {
		fmt.Fprintln(s.err, "gpuctl: the token travels unencrypted to another machine")
	}
	return base, nil
}

// token reads the token from where it is in no process list and no history.
func (c *controlClient) token() (string, error) {
	text, from := os.Getenv(tokenVariable), tokenVariable
	if c.tokenFile != "" {
		from = "--token-file"
		f, err := os.Open(c.tokenFile)
		if err != nil {
			return "", err
		}
		defer f.Close()
		raw, err := io.ReadAll(io.LimitReader(f, maxToken+1))
		if err != nil {
			return "", err
		}
		text = string(raw)
	}
	token := strings.TrimSpace(text)
	switch {
	case token == "" && c.tokenFile == "":
		return "", errors.New("there is no token: name its file with --token-file, or set " + tokenVariable)
	case token == "":
		return "", errors.New("the file of --token-file is empty")
	case len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("what " + from + " holds is no token: more than 4096 characters, or others than visible ASCII")
	}
	return token, nil
}

// show writes the answer and turns it into the exit code.
func (c *controlClient) show(s streams, status int, text []byte, answer controlAnswer) error {
	if c.output == "json" {
		var indented bytes.Buffer
		if err := json.Indent(&indented, bytes.TrimSpace(text), "", "  "); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.out, indented.String()); err != nil {
			return err
		}
	} else {
		for _, r := range answer.Records {
			if _, err := fmt.Fprintln(s.out, r.sentence()); err != nil {
				return err
			}
		}
	}
	if answer.Error != nil {
		err := fmt.Errorf("%s (%s)", safetext.Strip(answer.Error.Message, 500), safetext.Strip(answer.Error.Reason, 50))
		// A conflict, and what could not be queued or waited for, is a delivery
		// that was not made; the rest was never asked for.
		if status == http.StatusConflict || status == http.StatusServiceUnavailable && answer.Error.Reason != "token_unavailable" {
			fmt.Fprintf(s.err, "gpuctl: %v\n", err)
			return errFailed
		}
		return err
	}
	for _, r := range answer.Records {
		if r.Outcome != "succeeded" {
			return errFailed
		}
	}
	return nil
}

// sentence describes one record in one line, and in a second one what to do.
func (r controlRecord) sentence() string {
	name := safetext.Strip(r.Receiver, 63)
	if r.Trigger == "enable" {
		return fmt.Sprintf("%s: enabled, it gets deliveries again (audit record %s); send it a test: gpuctl webhook test %s", name, safetext.Strip(r.ID, 40), name)
	}
	took := time.Duration(r.TotalSeconds * float64(time.Second)).Round(time.Millisecond)
	answered := "no answer"
	if r.Status != 0 {
		answered = fmt.Sprintf("status %d", r.Status)
	}
	if r.Outcome == "succeeded" {
		return fmt.Sprintf("%s: delivered (%s, %v, audit record %s)", name, answered, took, safetext.Strip(r.ID, 40))
	}
	text := fmt.Sprintf("%s: not delivered: %s, %s (%s, %v, audit record %s)", name, safetext.Strip(r.Outcome, 20), safetext.Strip(r.ErrorType, 20), answered, took, safetext.Strip(r.ID, 40))
	if !r.NextAttempt.IsZero() {
		text += fmt.Sprintf("; attempt %d of %d follows at %s", r.Attempt+1, r.MaxAttempts, r.NextAttempt.UTC().Format(time.RFC3339))
	}
	if remedy := remedies.Of(audit.ErrorType(r.ErrorType)); remedy != "" {
		text += "\n  " + strings.ReplaceAll(strings.ReplaceAll(remedy, "RECEIVER", name), "NAME", name)
	}
	return text
}
