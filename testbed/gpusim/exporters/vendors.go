// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/vendors"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// VendorServer serves the pages of nodes with boards of other vendors, one listener a node.
type VendorServer struct {
	urls    map[string]string
	servers []*http.Server
}

// ServeVendors listens for every node on host: on base, base+1 and so on, or on free
// ports when base is 0. Close ends it.
func ServeVendors(fl *vendors.Fleet, host string, base int) (*VendorServer, error) {
	s := &VendorServer{urls: map[string]string{}}
	for i, name := range fl.Nodes() {
		number := 0
		if base != 0 {
			number = base + i
		}
		addr := net.JoinHostPort(host, strconv.Itoa(number))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("node %s: %w", name, ListenError(addr, err))
		}
		h := &http.Server{Handler: fl.Handler(name), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = h.Serve(l) }()
		s.servers = append(s.servers, h)
		s.urls[name] = "http://" + l.Addr().String() + "/metrics"
	}
	return s, nil
}

// URL is where a node's page is, or "" for an unknown node.
func (s *VendorServer) URL(node string) string { return s.urls[node] }

// Close stops listening.
func (s *VendorServer) Close() {
	for _, h := range s.servers {
		_ = h.Close()
	}
}

// ControlVendors is the control port: faults, pods and truth. The sink may be nil; with
// one, its answers can be set here too.
func ControlVendors(fl *vendors.Fleet, sink *webhook.Sink) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fault", func(w http.ResponseWriter, r *http.Request) {
		var req vendors.Fault
		err := strictjson.Decode(r.Body, &req)
		var id string
		if err == nil {
			id, err = fl.StartFault(req)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		strictjson.Reply(w, http.StatusCreated, map[string]string{"id": id})
	})
	mux.HandleFunc("DELETE /fault/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch err := fl.EndFault(r.PathValue("id")); {
		case errors.Is(err, vendors.ErrNoFault):
			strictjson.Refuse(w, http.StatusNotFound, err)
		default:
			done(w, err, func() error { return nil })
		}
	})
	mux.HandleFunc("GET /truth", func(w http.ResponseWriter, _ *http.Request) {
		strictjson.Reply(w, http.StatusOK, fl.TruthAt(fl.Now()))
	})
	mux.HandleFunc("POST /pods", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Node string        `json:"node"`
			Pods []vendors.Pod `json:"pods"`
		}
		done(w, strictjson.Decode(r.Body, &req), func() error { return fl.SetPods(req.Node, req.Pods) })
	})
	if sink != nil {
		mux.HandleFunc("/answer", sink.ServeAnswers)
	}
	return mux
}
