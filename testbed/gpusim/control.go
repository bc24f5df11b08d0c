// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusim

import (
	"encoding/json"
	"errors"
	"net/http"
)

// controlRequest is a body of POST /fault: a fault to start, or the id of one
// to end.
type controlRequest struct {
	Fault
	ID  string `json:"id,omitempty"`
	End bool   `json:"end,omitempty"`
}

// Control is the control port: faults, changes, devices and truth. The sink may be nil; with one,
// its answers can be set here too.
func Control(fl *Fleet, s *Server, sink *Sink) http.Handler {
	mux := http.NewServeMux()
	end := func(w http.ResponseWriter, id string) {
		st, err := fl.EndFault(id)
		if err != nil {
			refuse(w, err)
			return
		}
		s.Reconcile()
		reply(w, http.StatusOK, st)
	}
	mux.HandleFunc("POST /fault", func(w http.ResponseWriter, r *http.Request) {
		var req controlRequest
		if err := decodeStrict(r.Body, &req); err != nil {
			refuse(w, err)
			return
		}
		if req.End {
			end(w, req.ID)
			return
		}
		if req.ID != "" {
			refuse(w, errors.New("an id is given to a fault, not chosen: leave it out, or add \"end\": true"))
			return
		}
		st, err := fl.StartFault(req.Fault)
		if err != nil {
			refuse(w, err)
			return
		}
		s.Reconcile()
		reply(w, http.StatusCreated, st)
	})
	mux.HandleFunc("DELETE /fault/{id}", func(w http.ResponseWriter, r *http.Request) { end(w, r.PathValue("id")) })
	mux.HandleFunc("GET /fault", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, fl.Faults()) })
	mux.HandleFunc("GET /truth", func(w http.ResponseWriter, _ *http.Request) {
		t := fl.TruthAt(fl.clock())
		for i := range t.Nodes {
			t.Nodes[i].URL = s.URL(t.Nodes[i].Name)
		}
		reply(w, http.StatusOK, t)
	})
	mux.HandleFunc("GET /devices/{node}", func(w http.ResponseWriter, r *http.Request) {
		devices, err := fl.Devices(r.PathValue("node"))
		if err != nil {
			refuse(w, err)
			return
		}
		reply(w, http.StatusOK, devices)
	})
	mux.HandleFunc("POST /pods", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Node string `json:"node"`
			Pods []Pod  `json:"pods"`
		}
		done(w, decodeStrict(r.Body, &req), func() error { return fl.SetPods(req.Node, req.Pods) })
	})
	mux.HandleFunc("POST /mig", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Node   string   `json:"node"`
			Device int      `json:"device"`
			Layout []string `json:"layout"`
		}
		done(w, decodeStrict(r.Body, &req), func() error { return fl.SetMIG(req.Node, req.Device, req.Layout) })
	})
	if sink != nil {
		mux.HandleFunc("/answer", sink.answers)
	}
	return mux
}

// done makes a change, if its request could be read, and answers 204.
func done(w http.ResponseWriter, err error, change func() error) {
	if err == nil {
		err = change()
	}
	if err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// reply writes a value as indented JSON.
func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// refuse answers a request that cannot be done with the reason.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, ErrNoFault):
		status = http.StatusNotFound
	case errors.Is(err, ErrTooManyFaults), errors.Is(err, errTooManyAnswers):
		status = http.StatusTooManyRequests
	}
	reply(w, status, map[string]string{"error": err.Error()})
}
