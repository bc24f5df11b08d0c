// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package exporters

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Replay serves captured pages byte for byte: the first file at /metrics, and
// each at /<NAME>/metrics, where NAME is the file's name without extension.
type Replay struct {
	mux   *http.ServeMux
	paths []string
}

// NewReplay reads the files. Two files of one name are an error.
func NewReplay(files []string) (*Replay, error) {
	if len(files) == 0 {
		return nil, errors.New("replay needs at least one file")
	}
	r := &Replay{mux: http.NewServeMux()}
	seen := map[string]string{}
	for i, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(file)
		name = strings.TrimSuffix(name, filepath.Ext(name))
		if strings.ContainsAny(name, "{}") || name == "" || strings.TrimSpace(name) != name {
			return nil, fmt.Errorf("%s: the name cannot be part of a path: rename the file", file)
		}
		if other, ok := seen[name]; ok {
			return nil, fmt.Errorf("%s and %s would both be served at /%s/metrics: rename one", other, file, name)
		}
		seen[name] = file
		if i == 0 {
			r.serve("/metrics", page)
		}
		r.serve("/"+name+"/metrics", page)
	}
	r.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Join(r.paths, "\n") + "\n"))
	})
	return r, nil
}

func (r *Replay) serve(path string, page []byte) {
	r.paths = append(r.paths, path)
	r.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		_, _ = w.Write(page)
	})
}

// Paths lists the paths that are served.
func (r *Replay) Paths() []string { return r.paths }

// ServeHTTP makes the replay a handler.
func (r *Replay) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }
