// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

// Exporter has the names and texts of a vendor's exporter in configurations and in
// remedies.
type Exporter struct {
	Type    string // of the receiver: dcgm
	Program string // dcgm-exporter
	Port    int    // that it listens on by default
	// Remedies are for the outcomes caused by the exporter: Parse, Empty, NoValue and
	// NoDevice; RateLimited where it limits how often it is scraped; Status, where answers
	// from 500 on have a cause of their own.
	Remedies map[Outcome]string
	// Remedies for a part of a page: lines with a text as value, other lines that are no
	// samples, series that are repeated, samples over a limit of a line.
	TextLine, Line, Repeated, Long string
	// Remedies for a page with devices: rows of known fields name none; the exporter counts
	// more devices than it has rows of. Empty: nothing is logged.
	NoIdentity, Missing string
	// Doubt is the remedy for a page that contradicts itself about the unit of a family.
	Doubt string
	// Remedies for a page over a limit of a target; Over is for those that are not in
	// OverLimits.
	OverLimits map[devicemap.Over]string
	Over       string
}

// Remedy is what to do about an outcome, given the error behind it, if any.
func (e *Exporter) Remedy(o Outcome, err error) string {
	switch o {
	case OK:
		return ""
	case Connect:
		return "check that " + e.Program + " runs and that this is its address; a NetworkPolicy may stand between"
	case Timeout:
		return "look at why the exporter is slow, and whether a NetworkPolicy drops packets; else raise collection_interval or scrape::scrape_timeout"
	case Redirect:
		return "write the address that it redirects to into " + e.Type + "::endpoints, path included"
	case CutOff:
		return "the exporter closed the connection within the page: look at its log and memory limit"
	case TooLarge:
		return "raise the limit that the cause names (scrape::body_size_limit, sample_limit, label_limit, max_labels, max_label_bytes) if the page is really that large"
	case Status:
		return e.statusRemedy(err)
	case TLS:
		return e.tlsRemedy(err)
	case e.Other():
		return fmt.Sprintf("this is the page of another program: check the address; %s listens on port %d by default", e.Program, e.Port)
	default:
		return e.Remedies[o]
	}
}

func (e *Exporter) statusRemedy(err error) string {
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
		return "the port may speak TLS: use https:// in " + e.Type + "::endpoints, with scrape::tls_config"
	case code >= 500 && e.Remedies[Status] != "":
		return e.Remedies[Status]
	case code >= 500:
		return e.Program + " answers 500 when one entity fails: look at its log; a proxy before it answers 502 to 504"
	default:
		return "check path and authentication (scrape::basic_auth, scrape::authorization)"
	}
}

func (e *Exporter) tlsRemedy(err error) string {
	for _, text := range noTLS {
		if err == nil || !strings.Contains(err.Error(), text) {
			continue
		}
		if text == noTLS[2] {
			return "the port speaks TLS: use https:// in " + e.Type + "::endpoints, with scrape::tls_config"
		}
		return "the exporter speaks no TLS: use http:// in " + e.Type + "::endpoints"
	}
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "renew the exporter's certificate; if it is valid, set this machine's clock"
	}
	return "check scrape::tls_config (ca_file, server_name, cert_file) against the exporter's certificate"
}

// LineRemedy is what to do about a line that is no sample, from the parser's error.
func (e *Exporter) LineRemedy(err error) string {
	if errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return e.TextLine
	}
	return e.Line
}

// UnknownRemedy is what to do about a page with other names than the receiver knows.
func (e *Exporter) UnknownRemedy() string {
	return "this version of " + e.Program + " may be newer than this version of otelcol-gpu: install a newer otelcol-gpu, or an older exporter until there is one; where the page is relabelled or filtered, look at scrape::metric_relabel_configs"
}

// OverRemedy is what to do about a page that is over a limit of a target.
func (e *Exporter) OverRemedy(over devicemap.Over) string {
	if remedy, known := e.OverLimits[over]; known || over == "" {
		return remedy
	}
	return e.Over
}
