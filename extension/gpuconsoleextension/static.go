// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/otelcol-gpu/otelcol-gpu/internal/consoleapi"
)

// The page, as its build leaves it.
//
//go:embed web/dist
var dist embed.FS

// The API's contract.
//
//go:embed openapi.yaml
var openAPI []byte

// policy lets the page do what it needs and nothing else: no script or style but
// its own files, no request but to its own origin, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
}

// types are those of the files; a system's own list may be another.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".md": "text/plain; charset=utf-8", ".yaml": "application/yaml",
}

// file is a file of the page.
type file struct {
	kind      string
	immutable bool // its name changes with its content
	plain     variant
	packed    variant // by gzip
}

// variant is a form of a file. Its tag is its own, because its bytes are.
type variant struct {
	content []byte
	tag     string
}

func newVariant(content []byte) variant {
	sum := sha256.Sum256(content)
	return variant{content, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

func newFile(content []byte, kind string) (*file, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = w.Write(content); err != nil {
		return nil, err
	}
	if err = w.Close(); err != nil {
		return nil, err
	}
	return &file{kind: kind, plain: newVariant(content), packed: newVariant(b.Bytes())}, nil
}

// wantsGzip reports whether a request takes gzip.
func wantsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return !given || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

// readPage reads the files of the page by their paths.
func readPage() (map[string]*file, error) {
	root, err := fs.Sub(dist, "web/dist")
	if err != nil {
		return nil, err
	}
	files := map[string]*file{}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f, err := newFile(content, kindOf(name))
		if err != nil {
			return err
		}
		f.immutable = strings.HasPrefix(name, "assets/")
		files["/"+name] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	files["/"] = files["/index.html"]
	files["/openapi.yaml"], err = newFile(openAPI, kindOf("openapi.yaml"))
	return files, err
}

func kindOf(name string) string {
	if kind := types[path.Ext(name)]; kind != "" {
		return kind
	}
	return "application/octet-stream"
}

// page serves the files of the page. They are the same for every client, so none
// has to authenticate.
func (a *api) page(files map[string]*file) http.Handler {
	return a.observed("page", func(w http.ResponseWriter, r *http.Request) {
		f := files[r.URL.Path]
		switch {
		case f == nil:
			writeFailure(w, fail(http.StatusNotFound, consoleapi.NotFound, "There is no such page.", ""))
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			writeFailure(w, fail(http.StatusMethodNotAllowed, consoleapi.MethodNotAllowed, "This can only be read.", "Use GET."))
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Vary", "Accept-Encoding")
		v := &f.plain
		if wantsGzip(r) {
			v = &f.packed
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("ETag", v.tag)
		if f.immutable {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(v.content))
	})
}

// handler is the whole: API and page, compressed where that is wanted.
func (a *api) handler() (http.Handler, error) {
	files, err := readPage()
	if err != nil {
		return nil, err
	}
	compress, err := gzhttp.NewWrapper(gzhttp.MinSize(512))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, e := range a.endpoints() {
		mux.HandleFunc("/api/v1/"+e.name, compress(a.serve(e)))
	}
	mux.HandleFunc("/api/", a.unknown())
	mux.Handle("/", a.page(files))
	return a.underPrefix(mux), nil
}

// underPrefix answers below the prefix as without it: a proxy may take it off or not.
func (a *api) underPrefix(next http.Handler) http.Handler {
	prefix := a.config.PathPrefix
	if prefix == "" {
		return next
	}
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix {
			// Relative, because a host in front may have another name.
			w.Header().Set("Location", path.Base(prefix)+"/")
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		if strings.HasPrefix(r.URL.Path, prefix+"/") {
			stripped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
