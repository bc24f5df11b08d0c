// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// Codes of gRPC that are told apart here.
const (
	grpcOK              = 0
	grpcUnknown         = 2
	grpcDeadline        = 4
	grpcPermission      = 7
	grpcExhausted       = 8
	grpcUnimplemented   = 12
	grpcUnavailable     = 14
	grpcUnauthenticated = 16
)

// grpcError is an answer of gRPC that is no message.
type grpcError struct {
	code    int
	message string
}

func (e *grpcError) Error() string {
	return fmt.Sprintf("it answers gRPC status %d: %s", e.code, e.message)
}

// grpcTransport speaks HTTP/2 over connections that dial makes, or over the
// network without dial. Two unary calls are all the gRPC that is needed here; the
// library would double the program.
func grpcTransport(tlsConfig *tls.Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	protocols := new(http.Protocols)
	transport := &http.Transport{Protocols: protocols, TLSClientConfig: tlsConfig, DialContext: dial, MaxResponseHeaderBytes: 64 << 10}
	if tlsConfig != nil {
		protocols.SetHTTP2(true)
		transport.Proxy = http.ProxyFromEnvironment // the collector's exporter does so too
	} else {
		protocols.SetUnencryptedHTTP2(true)
	}
	return transport
}

// call makes a unary call with an empty message, and returns the message that is
// answered.
func call(ctx context.Context, transport *http.Transport, base url.URL, method string, header http.Header) ([]byte, error) {
	base.Path = method
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.String(), bytes.NewReader(make([]byte, 5)))
	if err != nil {
		return nil, errors.New("the address cannot be used")
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	req.Header.Set("User-Agent", "gpuctl")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers HTTP status %d: it is no gRPC server, or a proxy stands before it", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	status := resp.Trailer.Get("Grpc-Status")
	message := resp.Trailer.Get("Grpc-Message")
	if status == "" { // an answer that is nothing but a status has it in the header
		status, message = resp.Header.Get("Grpc-Status"), resp.Header.Get("Grpc-Message")
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		return nil, errors.New("it answers without a gRPC status: it is no gRPC server")
	}
	if code != grpcOK {
		if text, err := url.PathUnescape(message); err == nil {
			message = text
		}
		return nil, &grpcError{code, message}
	}
	return unframe(raw)
}

// unframe takes the one message out of the body of an answer.
func unframe(raw []byte) ([]byte, error) {
	if len(raw) < 5 {
		return nil, errors.New("the answer is shorter than a message")
	}
	size := binary.BigEndian.Uint32(raw[1:5])
	switch {
	case raw[0] != 0:
		return nil, errors.New("the answer is compressed, which was not asked for")
	case uint64(size) != uint64(len(raw)-5):
		return nil, errors.New("the answer has another length than it says")
	}
	return raw[5:], nil
}
