// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
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
	".svg": "image/svg+xml", ".md": "text/plain; charset=utf-8",
}

// file is a file of the page.
type file struct {
	content   []byte
	kind, tag string
	immutable bool // its name changes with its content
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
		sum := sha256.Sum256(content)
		kind := types[path.Ext(name)]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(name))
		}
		if kind == "" {
			kind = "application/octet-stream"
		}
		files["/"+name] = &file{
			content: content, kind: kind, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
			immutable: strings.HasPrefix(name, "assets/"),
		}
		return nil
	})
	files["/"] = files["/index.html"]
	return files, err
}

// page serves the files of the page. They are the same for everybody, so nobody
// has to say who they are.
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
		h.Set("ETag", f.tag)
		if f.immutable {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
	})
}

// handler is the whole: API and page, compressed where that is wanted.
func (a *api) handler() (http.Handler, error) {
	files, err := readPage()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, e := range a.endpoints() {
		mux.HandleFunc("/api/v1/"+e.name, a.serve(e))
	}
	mux.HandleFunc("/api/", a.unknown())
	mux.Handle("/", a.page(files))
	// The tag of a compressed answer is another one: it is another text.
	compress, err := gzhttp.NewWrapper(gzhttp.SuffixETag("-gzip"), gzhttp.MinSize(1024))
	if err != nil {
		return nil, err
	}
	return a.underPrefix(compress(mux)), nil
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
