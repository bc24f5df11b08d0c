// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/collector"
)

// authority signs certificates for loopback.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{key, cert}
}

func serial(t *testing.T) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	return n
}

// sign writes a new certificate for localhost, and for addresses, and its key as the
// kubelet does: a reader sees the old file or the new one.
func (a authority) sign(t *testing.T, dir string, addresses ...net.IP) (number *big.Int) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: serial(t), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}, IPAddresses: addresses}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	replace(t, filepath.Join(dir, "tls.crt"), "CERTIFICATE", der)
	replace(t, filepath.Join(dir, "tls.key"), "PRIVATE KEY", private)
	return template.SerialNumber
}

func replace(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// Certificate and authority between agents and gateway are replaced while both
// run, as cert-manager does: nothing is restarted by hand, and telemetry goes on.
func TestCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	api, port := nodeA(t)
	dir := t.TempDir()
	first := newAuthority(t)
	ca := filepath.Join(dir, "ca.crt")
	replace(t, ca, "CERTIFICATE", first.cert.Raw)
	first.sign(t, dir)

	gateway := start(t, m{
		"receivers": m{"otlp": m{"protocols": m{"grpc": m{
			"tls": m{"cert_file": filepath.Join(dir, "tls.crt"), "key_file": filepath.Join(dir, "tls.key"), "reload_interval": "1s"},
			// Agents connect again, as after any restart.
			"keepalive": m{"server_parameters": m{"max_connection_age": "1s", "max_connection_age_grace": "1s"}},
		}}}},
		"processors": m{"gpu_summary": m{"expected_pods": "seen"}},
	}, nil, config("gateway.yaml"))
	endpoint := fmt.Sprintf("localhost:%d", gateway.Ports.OTLPGRPC)
	secure := m{"endpoint": endpoint, "tls": m{"insecure": false, "ca_file": ca}}
	agent := start(t, m{
		"receivers": m{
			"gpu_allocation": m{"socket": filepath.Join(t.TempDir(), "kubelet.sock")},
			"dcgm":           m{"kubernetes": m{"port": port}, "collection_interval": "1s"},
		},
		"exporters":  m{"otlp_grpc": secure, "otlp_grpc/events": secure},
		"extensions": m{"reload_on_change": m{"files": []string{ca}, "interval": "1s"}},
		"service":    m{"extensions": []string{"health_check", "file_storage/state", "reload_on_change"}},
	}, agentEnv(t, api, endpoint), config("agent.yaml"))

	accepted := func() float64 {
		families, err := gateway.OwnMetrics(t.Context())
		if err != nil {
			return 0
		}
		sum := 0.0
		for _, name := range []string{"otelcol_receiver_accepted_metric_points", "otelcol_receiver_accepted_metric_points_total"} {
			for _, series := range families[name].GetMetric() {
				sum += collector.Value(series)
			}
		}
		return sum
	}
	// goesOn waits for new connections with a certificate, and for telemetry then.
	goesOn := func(by authority, number *big.Int) {
		t.Helper()
		roots := x509.NewCertPool()
		roots.AddCert(by.cert)
		require.Eventually(t, func() bool {
			conn, err := tls.Dial("tcp", endpoint, &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}})
			if err != nil {
				return false
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(number) == 0
		}, patience, 100*time.Millisecond, "the gateway shows the new certificate")
		shown, before := time.Now(), -1.0
		require.Eventually(t, func() bool {
			switch {
			case time.Since(shown) < 3*time.Second: // there may be a connection that is older than this certificate
				return false
			case before < 0:
				before = accepted()
				return false
			}
			return accepted() > before+100
		}, patience, 100*time.Millisecond, "telemetry over new connections")
	}
	require.Eventually(t, func() bool { return accepted() > 100 }, patience, 100*time.Millisecond)

	goesOn(first, first.sign(t, dir))
	assert.Empty(t, lines(log(t, agent), "a file has changed"))

	second := newAuthority(t)
	replace(t, ca, "CERTIFICATE", second.cert.Raw)
	goesOn(second, second.sign(t, dir))
	assert.Len(t, lines(log(t, agent), "a file has changed"), 1)
}
