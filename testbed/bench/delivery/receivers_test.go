// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package delivery

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	most      = 100                      // receivers
	childOf   = "DELIVERY_BENCH_RECEIVE" // the folder; makes the test binary the receivers
	certFile  = "receivers.pem"
	keyFile   = "receivers.key"
	loopback  = "127.0.0.1"
	hangPath  = "/hang"
	asideTime = 10 * time.Second
)

// receivers are webhooks in a process of their own, so that their CPU time is not
// counted here. Each is a port, since a machine has one address for few of them.
type receivers struct {
	Plain   []string // host:port
	TLS     []string
	Control string
}

var theReceivers receivers

// TestMain starts this binary once more as the receivers.
func TestMain(m *testing.M) {
	if folder := os.Getenv(childOf); folder != "" {
		exitOn(receive(folder))
		return
	}
	folder, err := os.MkdirTemp("", "delivery")
	exitOn(err)
	exitOn(makeCertificate(folder))
	// Before anything has looked at the machine's authorities.
	exitOn(os.Setenv("SSL_CERT_FILE", filepath.Join(folder, certFile)))
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childOf+"="+folder)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	exitOn(err)
	stdout, err := child.StdoutPipe()
	exitOn(err)
	exitOn(child.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	exitOn(err)
	exitOn(json.Unmarshal(line, &theReceivers))
	status := m.Run()
	_ = stdin.Close()
	_ = child.Wait()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeCertificate makes one for loopback that vouches for itself.
func makeCertificate(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.ParseIP(loopback)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, certFile), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile(filepath.Join(folder, keyFile), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
}

// receive is the child: it listens until its input ends.
func receive(folder string) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(folder, certFile), filepath.Join(folder, keyFile))
	if err != nil {
		return err
	}
	ends := make(chan struct{})
	server := &http.Server{
		Handler: newArrivals(ends), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), // connections that are given up
	}
	var r receivers
	listen := func() (net.Listener, string, error) {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, "", err
		}
		return l, l.Addr().String(), nil
	}
	for range most {
		plain, address, err := listen()
		if err != nil {
			return err
		}
		r.Plain = append(r.Plain, address)
		go func() { _ = server.Serve(plain) }()
		secure, address, err := listen()
		if err != nil {
			return err
		}
		r.TLS = append(r.TLS, address)
		go func() {
			_ = server.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
		}()
	}
	r.Control = r.Plain[0]
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(ends)
	return server.Close()
}

// arrivals notes when requests arrive.
type arrivals struct {
	*http.ServeMux

	mu   sync.Mutex
	took map[string][]time.Duration // by path, since the event was handed over
}

func newArrivals(ends <-chan struct{}) *arrivals {
	a := &arrivals{ServeMux: http.NewServeMux(), took: map[string][]time.Duration{}}
	a.HandleFunc("POST /", func(_ http.ResponseWriter, r *http.Request) {
		now := time.Now()
		handed, err := handedOver(r.Header.Get("webhook-id"))
		a.mu.Lock()
		defer a.mu.Unlock()
		if err == nil {
			a.took[r.URL.Path] = append(a.took[r.URL.Path], now.Sub(handed))
		}
	})
	a.HandleFunc("POST "+hangPath, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select { // never an answer
		case <-r.Context().Done():
		case <-ends:
		}
	})
	// What has arrived since the last time this was asked.
	a.HandleFunc("GET /took", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_ = json.NewEncoder(w).Encode(a.took)
		clear(a.took)
	})
	return a
}

// eventID contains when the event was handed over.
func eventID(now time.Time, n int) string { return fmt.Sprintf("%d-%d", now.UnixNano(), n) }

func handedOver(id string) (time.Time, error) {
	nanos, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(nanos, 10, 64)
	return time.Unix(0, n), err
}

// took asks the receivers what has arrived at each path since the last time.
func took() (map[string][]time.Duration, error) {
	client := http.Client{Timeout: asideTime, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + theReceivers.Control + "/took")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var took map[string][]time.Duration
	return took, json.NewDecoder(resp.Body).Decode(&took)
}
