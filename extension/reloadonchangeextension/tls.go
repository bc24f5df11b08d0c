// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package reloadonchangeextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/reloadonchangeextension"

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// tlsFiles are the files of one section of the configuration that has settings of TLS.
type tlsFiles struct {
	cert, key   string   // both or none
	authorities []string // ca_file, client_ca_file
}

// tlsOf returns the files of all sections below a part of the configuration.
func tlsOf(part any) (all []tlsFiles) {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			all = append(all, tlsOf(p)...)
		}
	case map[string]any:
		text := func(key string) string { s, _ := part[key].(string); return s }
		var f tlsFiles
		if cert, key := text("cert_file"), text("key_file"); cert != "" && key != "" {
			f.cert, f.key = cert, key
		}
		for _, key := range []string{"ca_file", "client_ca_file"} {
			if file := text(key); file != "" {
				f.authorities = append(f.authorities, file)
			}
		}
		if f.cert != "" || len(f.authorities) > 0 {
			all = append(all, f)
		}
		for _, p := range part {
			all = append(all, tlsOf(p)...)
		}
	}
	return all
}

// check returns why no component could start with the files. Of a pair that a program has
// written half, the key does not match the certificate.
func (f *tlsFiles) check() error {
	if f.cert != "" {
		if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
			return fmt.Errorf("%s and %s: %w", f.cert, f.key, err)
		}
	}
	for _, file := range f.authorities {
		pem, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !x509.NewCertPool().AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate", file)
		}
	}
	return nil
}
