// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package migprofile reads the names of MIG profiles. The driver, exporters, ResourceSlices, and
// the resources and labels of NVIDIA's Kubernetes components write one profile differently; its
// normal form is the driver's: 1g.10gb, 1g.10gb+me, 1g.24gb-me.
package migprofile

import (
	"strconv"
	"strings"
)

// Profile is a MIG profile of a GPU instance.
type Profile struct {
	// Compute is the number of compute slices.
	Compute, MemoryGB int64
	// Extensions distinguishes profiles of one size by their media and graphics engines:
	// "+me", "+me.all", "+gfx", "-me"; "" for most.
	Extensions string
}

// Parse reads a name in any of its forms. A leading compute instance, as in 1c.3g.40gb, is left
// out. ok is false for a text that is no profile.
func Parse(name string) (p Profile, ok bool) {
	rest := strings.ToLower(name)
	if _, after, found := number(rest, "c."); found {
		rest = after
	}
	if p.Compute, rest, ok = number(rest, "g."); !ok {
		return Profile{}, false
	}
	if p.MemoryGB, rest, ok = number(rest, "gb"); !ok {
		return Profile{}, false
	}
	if p.Extensions, ok = extensions(rest); !ok {
		return Profile{}, false
	}
	return p, true
}

// number reads digits and the unit behind them.
func number(s, unit string) (n int64, rest string, ok bool) {
	const most = 1 << 20
	i := 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < most; i++ {
		n = n*10 + int64(s[i]-'0')
	}
	rest, ok = strings.CutPrefix(s[i:], unit)
	return n, rest, ok && n > 0 && n < most
}

var dots = strings.NewReplacer("+", ".", ",", ".")

// extensions reads words, each behind a separator. The name of a resource cannot contain a plus,
// so the device plugin writes a dot instead.
func extensions(s string) (normal string, ok bool) {
	if s == "" {
		return "", true
	}
	separator := true // before s
	for i, c := range []byte(s) {
		switch {
		case i > 0 && c >= 'a' && c <= 'z', !separator && c >= '0' && c <= '9':
			separator = false
		case strings.IndexByte("+-.,", c) >= 0 && (i == 0 || !separator):
			separator = true
		default:
			return "", false
		}
	}
	switch {
	case separator:
		return "", false
	case s[0] == '.', s[0] == ',':
		return "+" + dots.Replace(s[1:]), true
	}
	return s[:1] + dots.Replace(s[1:]), true
}

// Normal returns the normal form of a name, and any other text as it is.
func Normal(name string) string {
	p, ok := Parse(name)
	if !ok {
		return name
	}
	text := strconv.AppendInt(make([]byte, 0, 32), p.Compute, 10)
	text = strconv.AppendInt(append(text, "g."...), p.MemoryGB, 10)
	text = append(append(text, "gb"...), p.Extensions...)
	if string(text) == name {
		return name
	}
	return string(text)
}

// Resource returns the profile in the name of an extended resource of NVIDIA's device plugin,
// such as nvidia.com/mig-1g.10gb.me; "" for every other resource.
func Resource(name string) string {
	profile, found := strings.CutPrefix(name, "nvidia.com/mig-")
	if !found {
		return ""
	}
	profile = strings.TrimSuffix(profile, ".shared") // of instances that are shared by time
	if _, ok := Parse(profile); !ok {
		return "" // the plugin's configuration may rename resources
	}
	return Normal(profile)
}

// Cut separates the model and the profile of a MIG device's name: the driver's
// ("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), or that of GPU feature discovery, which has dashes
// instead of spaces. The profile of another name is "".
func Cut(name string) (model, profile string) {
	i := strings.LastIndex(name, "MIG")
	if i < 1 || i+len("MIG") == len(name) {
		return name, ""
	}
	if before, after := name[i-1], name[i+len("MIG")]; before != after || before != ' ' && before != '-' {
		return name, ""
	}
	rest := name[i+len("MIG")+1:]
	if _, ok := Parse(rest); !ok {
		return name, ""
	}
	return name[:i-1], Normal(rest)
}
