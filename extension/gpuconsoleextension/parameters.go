// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpuconsoleextension // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension"

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-gpu/otelcol-gpu/extension/gpuconsoleextension/internal/fleet"
)

const (
	// maxName is the length of Kubernetes' longest names.
	maxName   = 253
	maxCursor = 2048
	// maxQuery bounds the whole query, encoded.
	maxQuery = 32 << 10
)

// parameters are those of one request. The first error stays.
type parameters struct {
	values url.Values
	body   []byte // of a request that changes something
	err    error
}

// parse reads the query of a request to an endpoint that knows some parameters.
func parse(raw string, known ...string) *parameters {
	p := &parameters{}
	if len(raw) > maxQuery {
		p.refuse("the query", fmt.Sprintf("is longer than %d bytes", maxQuery))
		return p
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		p.refuse("the query", "cannot be read: it is not percent-encoded as it should be")
		return p
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			p.refuse(quoted(name), "is not known here; known are "+strings.Join(known, ", "))
		case len(all) > 1:
			p.refuse(name, "is there more than once")
		case !utf8.ValidString(all[0]):
			p.refuse(name, "is no UTF-8")
		}
	}
	p.values = values
	return p
}

// quoted shows a text from outside.
func quoted(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strconv.QuoteToASCII(s)
}

func (p *parameters) refuse(name, why string) {
	if p.err == nil {
		p.err = invalid(name + " " + why + ".")
	}
}

func (p *parameters) has(name string) bool { return p.values.Has(name) }

// text is a parameter of at most so many characters.
func (p *parameters) text(name string, most int) string {
	s := p.values.Get(name)
	if utf8.RuneCountInString(s) > most {
		p.refuse(name, fmt.Sprintf("has %d characters; at most %d are allowed", utf8.RuneCountInString(s), most))
	}
	return s
}

// name is a parameter that must be there.
func (p *parameters) name(name string) string {
	s := p.text(name, maxName)
	if s == "" {
		p.refuse(name, "is missing")
	}
	return s
}

// given is a parameter that selects by a name where it is there.
func (p *parameters) given(name string) *string {
	if !p.has(name) {
		return nil
	}
	s := p.text(name, maxName)
	return &s
}

// key names a service.
func (p *parameters) key() fleet.Key {
	return fleet.Key{Cluster: p.text("cluster", maxName), Slurm: p.text("slurm_cluster", maxName), Namespace: p.name("namespace"), Service: p.name("service")}
}

// where names a node or a device, or both.
func (p *parameters) where() *fleet.Where {
	w := &fleet.Where{Cluster: p.text("cluster", maxName), Node: p.text("node", maxName), Device: p.text("device", maxName)}
	if w.Node == "" && w.Device == "" {
		p.refuse("node", "is missing, and so is device; one of them is needed")
	}
	return w
}

// flag is a parameter that is false unless it is true.
func (p *parameters) flag(name string) bool {
	return p.oneOf(name, "false", "true", "false") == "true"
}

// oneOf is a parameter with one of some values.
func (p *parameters) oneOf(name, otherwise string, allowed ...string) string {
	if !p.has(name) && otherwise != "" {
		return otherwise
	}
	s := p.values.Get(name)
	if !slices.Contains(allowed, s) {
		if s == "" {
			s = "nothing"
		} else {
			s = quoted(s)
		}
		p.refuse(name, "is "+s+"; use "+strings.Join(allowed, ", "))
	}
	return s
}

// limit is how many items a page has.
func (p *parameters) limit(most int) int {
	return p.limited(most, ", which is max_services_per_request")
}

// limited is limit where it has another cause.
func (p *parameters) limited(most int, cause string) int {
	if !p.has("limit") {
		return min(100, most)
	}
	n := p.number("limit", most)
	if n > most && p.err == nil {
		p.err = exceeded(fmt.Sprintf("limit is more than %d items%s: ask for at most %d and for further pages with cursor.", most, cause, most))
	}
	return min(n, most)
}

// number is a parameter of 1 or more; all that are above most are most + 1.
func (p *parameters) number(name string, most int) int {
	s := p.values.Get(name)
	n, err := strconv.Atoi(s)
	if err != nil && isDigits(s) {
		n = most + 1 // more than an int holds
	} else if err != nil || n < 1 {
		p.refuse(name, "is "+quoted(s)+"; it is a whole number from 1 to "+strconv.Itoa(most))
		return 1
	}
	return min(n, most+1)
}

// whole is a parameter from 1 to most.
func (p *parameters) whole(name string, most int) int {
	n := p.number(name, most)
	if n > most {
		p.refuse(name, "is more than "+strconv.Itoa(most))
	}
	return min(n, most)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// cursor is where a page begins: behind an item, which has a key, and if that is
// gone at a place in the list.
type cursor struct {
	place uint32
	item  uint64
}

const cursorVersion = 1

func hashOf(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return h.Sum64()
}

func (c cursor) String() string {
	b := []byte{cursorVersion}
	b = binary.BigEndian.AppendUint32(b, c.place)
	b = binary.BigEndian.AppendUint64(b, c.item)
	return base64.RawURLEncoding.EncodeToString(b)
}

// cursor returns nil for the first page.
func (p *parameters) cursor() *cursor {
	s := p.text("cursor", maxCursor)
	if s == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 13 || b[0] != cursorVersion {
		p.refuse("cursor", "is none that was given out; it is next of the page before")
		return nil
	}
	return &cursor{place: binary.BigEndian.Uint32(b[1:]), item: binary.BigEndian.Uint64(b[5:])}
}

// page is a part of a list.
type page struct {
	from, to int
	next     *string
}

// pageOf finds the page of a list of n items; key returns their keys.
func pageOf(c *cursor, limit, n int, key func(int) string) page {
	from := 0
	if c != nil {
		from = min(int(c.place), n)
		// Lists change between two pages. Mostly the item is where it was.
		at := func(i int) bool { return i >= 0 && i < n && hashOf(key(i)) == c.item }
		if !at(from - 1) {
			for i := range n {
				if at(i) {
					from = i + 1
					break
				}
			}
		}
	}
	out := page{from: from, to: min(from+limit, n)}
	if out.to < n {
		next := cursor{place: uint32(out.to), item: hashOf(key(out.to - 1))}.String()
		out.next = &next
	}
	return out
}
