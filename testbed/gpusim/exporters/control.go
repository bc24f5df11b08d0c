// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/otelcol-gpu/otelcol-gpu/testbed/fakes/webhook"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim"
	"github.com/otelcol-gpu/otelcol-gpu/testbed/internal/strictjson"
)

// controlRequest is a body of POST /fault: a fault to start, or the id of one
// to end.
type controlRequest struct {
	gpusim.Fault
	ID  string `json:"id,omitempty"`
	End bool   `json:"end,omitempty"`
}

// Control is the control port: faults, changes, devices and truth. The sink may be nil; with one,
// its answers can be set here too.
func Control(fl *gpusim.Fleet, s *Server, sink *webhook.Sink) http.Handler {
	mux := http.NewServeMux()
	end := func(w http.ResponseWriter, id string) {
		st, err := fl.EndFault(id)
		if err != nil {
			refuse(w, err)
			return
		}
		s.Reconcile()
		strictjson.Reply(w, http.StatusOK, st)
	}
	mux.HandleFunc("POST /fault", func(w http.ResponseWriter, r *http.Request) {
		var req controlRequest
		if err := strictjson.Decode(r.Body, &req); err != nil {
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
		strictjson.Reply(w, http.StatusCreated, st)
	})
	mux.HandleFunc("DELETE /fault/{id}", func(w http.ResponseWriter, r *http.Request) { end(w, r.PathValue("id")) })
	mux.HandleFunc("GET /fault", func(w http.ResponseWriter, _ *http.Request) { strictjson.Reply(w, http.StatusOK, fl.Faults()) })
	mux.HandleFunc("GET /truth", func(w http.ResponseWriter, _ *http.Request) {
		t := fl.TruthAt(fl.Now())
		for i := range t.Nodes {
			t.Nodes[i].URL = s.URL(t.Nodes[i].Name)
		}
		for i := range t.Engines {
			e := &t.Engines[i]
			e.URL = s.EngineURL(e.Namespace, e.Pod, e.Path)
		}
		strictjson.Reply(w, http.StatusOK, t)
	})
	mux.HandleFunc("GET /truth/requests", func(w http.ResponseWriter, r *http.Request) {
		truth, err := requestsTruth(fl, r.URL.Query())
		if err != nil {
			refuse(w, err)
			return
		}
		strictjson.Reply(w, http.StatusOK, truth)
	})
	mux.HandleFunc("GET /truth/usage", func(w http.ResponseWriter, r *http.Request) {
		from, to, err := span(fl, r.URL.Query())
		if err != nil {
			refuse(w, err)
			return
		}
		truth, err := fl.UsageOf(from, to)
		if err != nil {
			refuse(w, err)
			return
		}
		strictjson.Reply(w, http.StatusOK, truth)
	})
	mux.HandleFunc("GET /devices/{node}", func(w http.ResponseWriter, r *http.Request) {
		devices, err := fl.Devices(r.PathValue("node"))
		if err != nil {
			refuse(w, err)
			return
		}
		strictjson.Reply(w, http.StatusOK, devices)
	})
	mux.HandleFunc("POST /pods", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Node string       `json:"node"`
			Pods []gpusim.Pod `json:"pods"`
		}
		done(w, strictjson.Decode(r.Body, &req), func() error { return fl.SetPods(req.Node, req.Pods) })
	})
	mux.HandleFunc("POST /mig", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Node   string   `json:"node"`
			Device int      `json:"device"`
			Layout []string `json:"layout"`
		}
		done(w, strictjson.Decode(r.Body, &req), func() error { return fl.SetMIG(req.Node, req.Device, req.Layout) })
	})
	if sink != nil {
		mux.HandleFunc("/answer", sink.ServeAnswers)
	}
	return mux
}

// requestsTruth answers GET /truth/requests: of a service, in a namespace if there are
// several, from the start until now unless stated.
func requestsTruth(fl *gpusim.Fleet, q url.Values) (gpusim.RequestsTruth, error) {
	from, to, err := span(fl, q)
	if err != nil {
		return gpusim.RequestsTruth{}, err
	}
	service, namespace := q.Get("service"), q.Get("namespace")
	if service == "" {
		return gpusim.RequestsTruth{}, errors.New("service: must be given")
	}
	if namespace == "" {
		found := map[string]bool{}
		for _, e := range fl.Engines() {
			if e.Service == service && !e.Gateway {
				found[e.Namespace], namespace = true, e.Namespace
			}
		}
		if len(found) > 1 {
			return gpusim.RequestsTruth{}, fmt.Errorf("namespace: service %q is in several, name one", service)
		}
	}
	return fl.RequestsOf(namespace, service, from, to)
}

// span reads from and to: from the start until now unless stated.
func span(fl *gpusim.Fleet, q url.Values) (from, to time.Duration, err error) {
	to = fl.Now().Sub(fl.Start())
	for key, into := range map[string]*time.Duration{"from": &from, "to": &to} {
		if err := parseTime(q.Get(key), fl.Start(), into); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", key, err)
		}
	}
	if to < from {
		return 0, 0, errors.New("to: is before from")
	}
	return from, to, nil
}

// parseTime reads a time, or seconds since the start of the fleet.
func parseTime(s string, start time.Time, into *time.Duration) error {
	if s == "" {
		return nil
	}
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(seconds) < 1e9 {
		*into = time.Duration(seconds * float64(time.Second))
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("%q is neither a time such as 2026-01-02T15:04:05Z nor seconds since the start", s)
	}
	*into = at.Sub(start)
	return nil
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

// refuse answers a request that cannot be done with the reason.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, gpusim.ErrNoFault), errors.Is(err, gpusim.ErrNoRequests):
		status = http.StatusNotFound
	case errors.Is(err, gpusim.ErrTooManyFaults):
		status = http.StatusTooManyRequests
	}
	strictjson.Refuse(w, status, err)
}
