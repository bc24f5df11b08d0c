// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	write := func(from, to time.Time) *config.TLSServer {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to}, &x509.Certificate{}, &key.PublicKey, key)
		require.NoError(t, err)
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		s := &config.TLSServer{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
		require.NoError(t, os.WriteFile(s.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
		require.NoError(t, os.WriteFile(s.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
		return s
	}
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		from, to time.Duration
		want     probe.Status
	}{"valid": {-day, 60 * day, probe.OK}, "soon over": {-day, 3 * day, probe.Warn}, "over": {-9 * day, -day, probe.Fail}, "not yet": {day, 60 * day, probe.Fail}} {
		assert.Equal(t, tt.want, certificate(now, "x", write(now.Add(tt.from), now.Add(tt.to))).Status, name)
	}
	assert.Equal(t, probe.Fail, certificate(now, "x", &config.TLSServer{CertFile: dir + "/none", KeyFile: dir + "/none"}).Status)
}
