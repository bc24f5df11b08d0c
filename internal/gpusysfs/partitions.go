// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpusysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	nodesDir    = "class/kfd/kfd/topology/nodes"
	platformDir = "devices/platform"
	xcpPrefix   = "amdgpu_xcp_"
)

// kfdNode is a compute node of the kernel: a board, or one of its partitions.
type kfdNode struct {
	domain, location, render uint64
}

// placed is a node of a board.
type placed struct {
	board  *Device
	part   int
	render string
	// ambiguous: the bits of the function may be the board's own or the partition's.
	ambiguous bool
}

// partitions reads which partition of which board a name of the kernel means:
// amdgpu_xcp_<N> has a render node, which one compute node has, which has the address of
// its board and the number of the partition.
func (s *scanner) partitions() {
	nodes, whole := s.nodes()
	recent := slices.ContainsFunc(nodes, func(n kfdNode) bool { return n.part() > 0 })
	boards := map[*Device][]placed{}
	for _, n := range nodes {
		if p, ok := s.place(n, recent); ok {
			boards[p.board] = append(boards[p.board], p)
		}
	}
	parts := map[string]*Device{} // by render node
	for board, all := range boards {
		if whole {
			board.KFDNodes = len(all)
		}
		if !board.Partitioned() || board.ModeUnknown || !certain(all) {
			continue
		}
		for _, p := range all {
			if _, twice := parts[p.render]; twice {
				parts[p.render] = nil
				continue
			}
			parts[p.render] = partition(board, p.part)
		}
	}
	for name := range s.names { // copies of boards with the number of their nodes
		s.out.byName[name] = s.first(s.names[name])
	}
	for render, part := range parts {
		// A board's own render node is its first partition's.
		if own, ok := s.names[render]; !ok || part != nil && own.PCI == part.PCI && part.Part == "0" {
			s.out.byName[render] = part
		}
	}
	for _, entry := range s.list(OfPartitions, platformDir) {
		number, ok := strings.CutPrefix(strings.Replace(entry, "amdgpu_xcp.", xcpPrefix, 1), xcpPrefix)
		if _, err := strconv.ParseUint(number, 10, 32); !ok || err != nil {
			continue
		}
		if len(s.out.byName) >= MaxNames {
			s.problem(OfPartitions, Limited, platformDir)
			return
		}
		s.platform(xcpPrefix+number, path.Join(platformDir, entry, "drm"), parts)
	}
}

// platform adds the names of one platform device of the kernel.
func (s *scanner) platform(xcp, dir string, parts map[string]*Device) {
	var part *Device
	nodes := s.list(OfPartitions, dir)
	renders := 0
	for _, name := range nodes {
		if isNode(name) && strings.HasPrefix(name, "renderD") {
			part = parts[name]
			renders++
		}
	}
	if renders != 1 {
		part = nil
	}
	s.out.byName[xcp] = part
	for _, name := range nodes {
		if isNode(name) {
			s.out.byName[name] = part
		}
	}
}

// certain reports whether the nodes of a board have numbers that do not contradict each other.
func certain(all []placed) bool {
	seen := map[int]bool{}
	for _, p := range all {
		if p.ambiguous || seen[p.part] {
			return false
		}
		seen[p.part] = true
	}
	return true
}

// place finds the board of a compute node: location_id is bus, device and function, with the
// partition in bits 31:28, or on older kernels in the bits of the function.
func (s *scanner) place(n kfdNode, recent bool) (placed, bool) {
	address := func(location uint64) *Device {
		return s.out.byPCI[fmt.Sprintf("%04x:%02x:%02x.%x", n.domain, location>>8&0xff, location>>3&0x1f, location&7)]
	}
	p := placed{board: address(n.location), render: "renderD" + strconv.FormatUint(n.render, 10), part: n.part()}
	function := int(n.location & 7)
	if recent || function == 0 {
		return p, p.board != nil
	}
	p.ambiguous = p.board != nil // a virtual function, or a partition of the first
	if first := address(n.location &^ 7); first != nil && (p.board == nil || first.Partitioned() || first.ModeUnknown) {
		p.board, p.part = first, function
	}
	return p, p.board != nil
}

// part is the number of the partition as recent kernels have it.
func (n kfdNode) part() int { return int(n.location >> 28 & 0xf) }

// nodes reads the compute nodes of GPUs; whole is whether all nodes could be read.
func (s *scanner) nodes() (nodes []kfdNode, whole bool) {
	whole = true
	for _, name := range s.list(OfPartitions, nodesDir) {
		if len(nodes) >= MaxNames {
			s.problem(OfPartitions, Limited, nodesDir)
			return nodes, false
		}
		file := path.Join(nodesDir, name, "properties")
		text, err := s.text(OfPartitions, file)
		if err != nil {
			whole = whole && errors.Is(err, fs.ErrNotExist)
			continue
		}
		n, ok := parseNode(text)
		if !ok {
			s.problem(OfPartitions, Malformed, file)
			whole = false
			continue
		}
		if n.render > 0 { // 0: a processor
			nodes = append(nodes, n)
		}
	}
	return nodes, whole
}

// parseNode reads the properties of a compute node: a name and a number per line.
func parseNode(text string) (n kfdNode, ok bool) {
	found := 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var into *uint64
		switch key {
		case "domain":
			into = &n.domain
		case "location_id":
			into = &n.location
		case "drm_render_minor":
			into = &n.render
		default:
			continue
		}
		number, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return kfdNode{}, false
		}
		*into = number
		found++
	}
	return n, found == 3
}
