// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package model

// shrink drops pods, then devices, then single facts, for as long as the world still
// differs.
func shrink(w world, differs func(world) bool) world {
	for {
		before := size(w)
		w = shrinkOnce(w, differs)
		if size(w) == before {
			return w
		}
	}
}

// size counts facts, and pods in what Kubernetes reports.
func size(w world) int {
	n := len(w.facts)
	for _, f := range w.facts {
		if f.pods != nil {
			n += len(*f.pods)
		}
	}
	return n
}

func shrinkOnce(w world, differs func(world) bool) world {
	try := func(smaller world) bool {
		if size(smaller) < size(w) && differs(smaller) {
			w = smaller
			return true
		}
		return false
	}
	pods, devices := map[podKey]bool{}, map[string]bool{}
	for _, f := range w.facts {
		pods[f.pod()] = true
		devices[f.device()] = true
		if f.pods != nil {
			for _, p := range *f.pods {
				pods[p.pod] = true
			}
		}
	}
	for p := range pods {
		if p != (podKey{}) {
			try(w.withoutPod(p))
		}
	}
	for d := range devices {
		if d != "" {
			try(w.without(func(f fact) bool { return f.device() == d }))
		}
	}
	for part := len(w.facts) / 2; part > 0; part /= 2 {
		for from := 0; from < len(w.facts); {
			to := min(from+part, len(w.facts))
			smaller := world{cfg: w.cfg, facts: append(append([]fact{}, w.facts[:from]...), w.facts[to:]...)}
			if !try(smaller) {
				from = to
			}
		}
	}
	return w
}
