// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporterpage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
	"github.com/otelcol-gpu/otelcol-gpu/internal/pagetext"
	"github.com/otelcol-gpu/otelcol-gpu/receiver/dcgmreceiver/internal/dcgm"
)

// Outcome is how reading an exporter's page ended: the values of the attribute
// outcome of the receiver's own metric.
type Outcome string

const (
	OK       Outcome = "ok"
	Connect  Outcome = "connect"
	TLS      Outcome = "tls"
	Timeout  Outcome = "timeout"
	Status   Outcome = "http_status"
	Redirect Outcome = "redirect"
	CutOff   Outcome = "cut_off"
	TooLarge Outcome = "too_large"
	Parse    Outcome = "parse"
	// Empty is an answer without any sample.
	Empty Outcome = "empty"
	// NotDCGM is a page of another program.
	NotDCGM Outcome = "not_dcgm"
	// NoValue is a page that names GPUs and has no value of any.
	NoValue Outcome = "no_value"
	// NoDevice is a page of DCGM that names no GPU, or of which relabelling
	// leaves nothing.
	NoDevice Outcome = "no_device"
)

// ErrTooLarge is a page over scrape::body_size_limit.
var ErrTooLarge = errors.New("body size limit exceeded")

// StatusError is an answer with another status than 200.
type StatusError struct {
	Code int
	Text string // 404 Not Found
}

func (s *StatusError) Error() string { return "server returned HTTP status " + s.Text }

// RedirectError is a redirect that is not followed, To is empty for the last of
// too many.
type RedirectError struct{ To, Within string }

func (r *RedirectError) Error() string {
	if r.To == "" {
		return "redirected more than 10 times within " + r.Within
	}
	return fmt.Sprintf("redirected to %s: only redirects within %s are followed", r.To, r.Within)
}

// FollowWithin is the CheckRedirect of a client for exporters. It refuses
// redirects to somebody else: who may label a pod can be taken for an exporter,
// and must not send the agent, which is in the node's network, and its
// credentials to where it cannot go itself.
func FollowWithin(req *http.Request, via []*http.Request) error {
	switch first := via[0].URL; {
	case req.URL.Scheme != first.Scheme || req.URL.Host != first.Host:
		return &RedirectError{req.URL.Scheme + "://" + req.URL.Host, first.Host}
	case len(via) >= 10: // as net/http's own
		return &RedirectError{Within: first.Host}
	}
	return nil
}

// Failed is how reading ended that gave an error: of the connection, of Read, or
// one of this package.
func Failed(err error) Outcome {
	var (
		netErr   net.Error
		status   *StatusError
		redirect *RedirectError
	)
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrTooLarge), errors.Is(err, pagetext.ErrLimit):
		return TooLarge
	case errors.Is(err, pagetext.ErrNoPage):
		return Parse
	case errors.Is(err, pagetext.ErrEmpty):
		return Empty
	case errors.As(err, &redirect):
		return Redirect
	case errors.As(err, &status):
		if status.Code/100 == 3 {
			return Redirect
		}
		return Status
	case ofTLS(err):
		return TLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return Timeout
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return CutOff
	case errors.As(err, &netErr): // url.Error, which all errors of a connection are in, is one
		return Connect
	}
	return Parse // gzip that is none
}

// Lacking is the outcome of a page that could be read, by what it lacks.
func Lacking(lack devicemap.Lack) Outcome {
	switch lack {
	case devicemap.LacksNothing:
		return OK
	case devicemap.LacksFamilies:
		return NotDCGM
	case devicemap.LacksValues:
		return NoValue
	default:
		return NoDevice
	}
}

// noTLS are what Go's client finds where one side speaks TLS and the other does not.
var noTLS = []string{"server gave HTTP response to HTTPS client", "first record does not look like a TLS handshake", "malformed HTTP response \"\\x15\\x03"}

func ofTLS(err error) bool {
	var (
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	if errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) || errors.As(err, &unknown) {
		return true
	}
	for _, text := range noTLS {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// Remedy is what to do about an outcome, given the error behind it, if any.
func (o Outcome) Remedy(err error) string {
	switch o {
	case Status:
		return ofStatus(err)
	case TLS:
		return remedyOfTLS(err)
	default:
		return remedies[o]
	}
}

var remedies = map[Outcome]string{
	Connect:  "check that dcgm-exporter runs and that this is its address; a NetworkPolicy may stand between",
	Timeout:  "look at why the exporter is slow, and whether a NetworkPolicy drops packets; else raise collection_interval or scrape::scrape_timeout",
	Redirect: "write the address that it redirects to into dcgm::endpoints, path included",
	CutOff:   "the exporter closed the connection within the page: look at its log and memory limit",
	TooLarge: "raise the limit that the cause names (scrape::body_size_limit, sample_limit, label_limit, max_labels, max_label_bytes) if the page is really that large",
	Parse:    "the answer is no page in the Prometheus text format (HTML is a login page or another server): use the exporter's /metrics; if it is that page, a field in its counters file prints a text as its value: type it label (STRING) or take it out (BINARY)",
	Empty:    "the exporter prints nothing: look at its log; it has just started, sees no GPU, or its counters file names no field that the GPU has",
	NotDCGM:  "this is the page of another program: check the address; dcgm-exporter listens on port 9400 by default",
	NoValue:  "the host engine behind the exporter gives no values: look at dmesg for XIDs (79, 119), then restart nv-hostengine or dcgm-exporter",
	NoDevice: "no row names a GPU: check the exporter's counters file and its options for devices, and scrape::metric_relabel_configs",
}

func ofStatus(err error) string {
	var status *StatusError
	code := 0
	if errors.As(err, &status) {
		code = status.Code
	}
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return "give it what it asks for: scrape::basic_auth or scrape::authorization"
	case code == http.StatusNotFound:
		return "check the path, usually /metrics, and that this is the exporter's port"
	case code == http.StatusBadRequest:
		return "the port may speak TLS: use https:// in dcgm::endpoints, with scrape::tls_config"
	case code >= 500:
		return "dcgm-exporter answers 500 when one entity fails: look at its log; a proxy before it answers 502 to 504"
	default:
		return "check path and authentication (scrape::basic_auth, scrape::authorization)"
	}
}

func remedyOfTLS(err error) string {
	for _, text := range noTLS {
		if err == nil || !strings.Contains(err.Error(), text) {
			continue
		}
		if text == noTLS[2] {
			return "the port speaks TLS: use https:// in dcgm::endpoints, with scrape::tls_config"
		}
		return "the exporter speaks no TLS: use http:// in dcgm::endpoints"
	}
	return "check scrape::tls_config (ca_file, server_name, cert_file) against the exporter's certificate"
}

// RemedyOfOver is what to do about a page that is over a limit of a target.
func RemedyOfOver(over devicemap.Over) string {
	switch over {
	case "":
		return ""
	case devicemap.OverUnmapped:
		return "take families out by scrape::metric_relabel_configs or in the exporter's counters file, or set unmapped: drop"
	case devicemap.OverHolders, dcgm.OverXIDCodes:
		return "no GPU has so many: look at what prints the page, and at the labels that a proxy or relabelling puts on it"
	default:
		return "scrape the exporter of each node by itself, not one page of many nodes (a federated one), or take families out in the exporter's counters file"
	}
}

// LineRemedy is what to do about a line that is no sample, from the parser's error.
func LineRemedy(err error) string {
	if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return "a field prints a text as its value: in the exporter's counters file take the field of that line out (BINARY) or type it label (STRING)"
	}
	return "look at that line, and at the exporter's counters file and its pods' labels"
}

const (
	// RemedyOfRepeated is what to do about series that a page repeats.
	RemedyOfRepeated = "look for a field that the exporter's counters file has twice, under one name or two"
	// RemedyOfLong is what to do about samples over a limit of a line.
	RemedyOfLong = "take the label off in the exporter or by scrape::metric_relabel_configs (labeldrop), or raise the limit that the cause names"
)
