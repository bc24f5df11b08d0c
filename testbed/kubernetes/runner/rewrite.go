// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	// A Service by its name, with the port: without it the name is no address, but
	// for example the name that a certificate must have.
	serviceName = regexp.MustCompile(`\b([a-z0-9][a-z0-9-]*)\.([a-z0-9][a-z0-9-]*)\.svc(?:\.cluster\.local)?\.?(:\d+)`)
	localhost   = regexp.MustCompile(`\blocalhost\b|\b127\.0\.0\.1\b`)
	everywhere  = regexp.MustCompile(`\b0\.0\.0\.0\b|\[::\]`)
)

// rewrite makes a text of a pod true for a process that shares file system and
// network with all others.
func (r *Runner) rewrite(text string, in Inside) string {
	text = localhost.ReplaceAllString(text, in.Loopback)
	text = everywhere.ReplaceAllString(text, in.Address)
	text = serviceName.ReplaceAllStringFunc(text, func(match string) string {
		parts := serviceName.FindStringSubmatch(match)
		return r.addresses.service(parts[2], parts[1]) + parts[3]
	})
	return rewritePaths(text, in.Mounts)
}

// rewritePaths replaces paths that a container has mounted by the folders that
// they are. The longest path wins, and a path is not taken for part of another:
// /etc/app is neither in /etc/apple nor in /my/etc/app.
func rewritePaths(text string, mounts map[string]string) string {
	paths := slices.SortedFunc(maps.Keys(mounts), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	if len(paths) == 0 {
		return text
	}
	var out strings.Builder
	for at := 0; at < len(text); {
		path := ""
		if at == 0 || text[at-1] == '-' || !inPath(text[at-1]) { // ${NAME:-/etc/app}
			for _, p := range paths {
				if strings.HasPrefix(text[at:], p) && (at+len(p) == len(text) || text[at+len(p)] == '/' || !inPath(text[at+len(p)])) {
					path = p
					break
				}
			}
		}
		if path == "" {
			out.WriteByte(text[at])
			at++
			continue
		}
		out.WriteString(mounts[path])
		at += len(path)
	}
	return out.String()
}

// inPath is whether a byte can be within a path. A colon cannot: file:/etc/app.
func inPath(b byte) bool {
	return b == '/' || b == '.' || b == '-' || b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}
