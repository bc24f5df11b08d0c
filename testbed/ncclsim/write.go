// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package ncclsim

import (
	"slices"
	"strconv"
	"time"
)

// member is a process in a communicator, with what waits for its next dump.
type member struct {
	process      *Process
	communicator *Communicator
	rank         int
	records      []record
	dropped      uint64
	reported     uint64
}

// record is an operation that ended.
type record struct {
	operation  *Operation
	sequence   uint64
	took       uint64 // µs
	end        time.Time
	cpu, graph bool
}

// keep puts a record into the ring of a member.
func (r *Run) keep(m *member, rec record) {
	if n := len(m.records); n > 0 && r.LastOnly && r.tick(m.process, m.records[n-1].end) == r.tick(m.process, rec.end) {
		m.records = m.records[:n-1]
	}
	if len(m.records) >= r.Ring {
		m.records = slices.Delete(m.records, 0, 1)
		m.dropped++
	}
	m.records = append(m.records, rec)
}

// tick counts the dumps of a process that came before a time.
func (r *Run) tick(p *Process, at time.Time) int64 {
	return int64(at.Sub(r.Start)+r.Interval-p.phase) / int64(r.Interval)
}

// dump writes what a process has at its newest dump.
func (r *Run) dump(p *Process, now time.Time) error {
	at := r.Start.Add(time.Duration(r.tick(p, now)-1)*r.Interval + p.phase)
	if w := r.Paused[p.Number]; w != nil && at.After(w[0]) && at.Before(w[1]) {
		return nil
	}
	for _, m := range p.members {
		n := 0
		for n < len(m.records) && !m.records[n].end.After(at) {
			n++
		}
		if n == 0 {
			continue
		}
		r.lines(m, m.records[:n], at)
		m.records = slices.Delete(m.records, 0, n)
	}
	// The buffer of stdio goes to the file in blocks, and the rest after all lines of a dump.
	n := len(p.buffer)
	if r.Torn && r.rng.IntN(2) == 0 {
		n = r.rng.IntN(n + 1)
	}
	return p.write(n)
}

func (p *Process) write(n int) error {
	if n == 0 {
		return nil
	}
	_, err := p.file.Write(p.buffer[:n])
	p.buffer = append(p.buffer[:0], p.buffer[n:]...)
	return err
}

// kill ends all processes, each within a line.
func (r *Run) kill() error {
	for _, p := range r.Processes {
		for _, m := range p.members {
			if len(m.records) > 0 {
				start := len(p.buffer)
				p.buffer = r.record(p.buffer, m, m.records[0], m.records[0].end)
				p.buffer = p.buffer[:start+(len(p.buffer)-start)/2]
				break
			}
		}
		if err := p.write(len(p.buffer)); err != nil {
			return err
		}
	}
	return r.Close()
}

// Flush writes what is buffered, as a process does that ends as it should.
func (r *Run) Flush() error {
	for _, p := range r.Processes {
		if err := p.write(len(p.buffer)); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the files.
func (r *Run) Close() (err error) {
	for _, p := range r.Processes {
		if e := p.file.Close(); e != nil {
			err = e
		}
	}
	return err
}

// lines adds those of one dump of a member to the buffer of its process.
func (r *Run) lines(m *member, records []record, at time.Time) {
	p := m.process
	damage := r.Damaged[p.Number]
	if damage != Intact && (p.damages > 3 || r.rng.IntN(8) > 0) {
		damage = Intact
	}
	if damage == Joined && len(records) < 2 {
		damage = Half
	}
	if damage != Intact {
		p.damages++
	}
	if r.Version == V43 {
		p.buffer = r.marker(p.buffer, m, records, at)
		if damage == Marker {
			p.buffer = append(p.buffer[:len(p.buffer)-40], '\n')
		}
		r.Dropped += m.dropped - m.reported
		if damage == Marker {
			r.Dropped -= m.dropped - m.reported
		}
		m.reported = m.dropped
	}
	for i, rec := range records {
		line := len(p.buffer)
		if i == 0 && damage == NULs {
			p.buffer = append(p.buffer, make([]byte, 64)...)
		}
		if i == 0 && damage == Text {
			p.buffer = append(p.buffer, "NCCL INFO a line of somebody else\n"...)
		}
		p.buffer = r.record(p.buffer, m, rec, at)
		switch {
		case damage == Joined && i == 0:
			p.buffer = p.buffer[:len(p.buffer)-1]
		case damage == Joined && i == 1, damage == NULs && i == 0, damage == Marker && r.Version == V43:
		case damage == Half && i == 0:
			p.buffer = append(p.buffer[:line+(len(p.buffer)-line)/2], '\n')
		default:
			r.Written[rec.operation.Name]++
		}
	}
}

// marker is the line of v4.3 before the records of a dump.
func (r *Run) marker(b []byte, m *member, records []record, at time.Time) []byte {
	b = append(b, '{')
	b = r.header(b, m, at)
	coll, p2p := uint64(0), uint64(0)
	for _, rec := range records {
		if rec.operation.P2P {
			p2p++
		} else {
			coll++
		}
	}
	b = append(b, `,"dump_stats":{`...)
	for i, f := range []struct {
		name  string
		value uint64
	}{
		{"coll_records", coll},
		{"coll_dropped_total", m.dropped},
		{"coll_dropped_since_last_dump", m.dropped - m.reported},
		{"p2p_records", p2p},
		{"p2p_dropped_total", 0},
		{"p2p_dropped_since_last_dump", 0},
		{"proxy_records", 0},
		{"proxy_dropped_total", 0},
		{"proxy_dropped_since_last_dump", 0},
		{"proxy_ops_dropped_total", 0},
		{"proxy_ops_dropped_since_last_dump", 0},
		{"proxy_pxn_skipped_process_total", 5},
		{"proxy_steps_enabled", 0},
	} {
		b = number(b, f.name, f.value, i == 0)
	}
	return append(b, "}}\n"...)
}

func (r *Run) header(b []byte, m *member, at time.Time) []byte {
	c := m.communicator
	b = append(append(append(b, `"header":{"id":"`...), c.ID...), '"')
	if !r.Unnamed {
		b = append(append(append(b, `,"comm_name":"`...), c.Name...), '"')
	}
	b = number(b, "rank", uint64(m.rank), false)
	b = number(b, "n_ranks", uint64(len(c.members)), false)
	b = number(b, "nnodes", uint64(c.Nodes), false)
	b = append(append(b, `},"metadata":{"inspector_output_format_version":"`...), r.Version...)
	b = append(b, `","git_rev":"","rec_mechanism":"nccl_profiler_interface"`...)
	b = number(b, "dump_timestamp_us", uint64(at.Add(r.skew[m.process.Host]).UnixMicro()), false)
	b = append(append(append(b, `,"hostname":"`...), r.Host(m.process.Host)...), '"')
	b = number(b, "pid", uint64(m.process.PID), false)
	return append(b, '}')
}

// record is a line of one operation, dumped at a time.
func (r *Run) record(b []byte, m *member, rec record, at time.Time) []byte {
	b = append(b, '{')
	if r.Version != V43 {
		b = append(r.header(b, m, at), ',')
	}
	kind := "coll"
	if rec.operation.P2P {
		kind = "p2p"
	}
	b = append(append(append(b, '"'), kind...), `_perf":{"`...)
	b = append(append(append(append(b, kind...), `":"`...), rec.operation.Name...), '"')
	if r.Version == V43 && !rec.operation.P2P {
		b = append(b, `,"coll_algo":"RING","coll_proto":"SIMPLE"`...)
	}
	kind += "_"
	b = number(b, kind+"sn", rec.sequence, false)
	if rec.operation.P2P {
		b = number(b, "p2p_peer", uint64((m.rank+1)%len(m.communicator.members)), false)
	}
	b = number(b, kind+"msg_size_bytes", rec.operation.Bytes, false)
	source, took := "kernel_gpu", rec.took
	if rec.cpu {
		source = "collective_cpu"
	}
	b = number(b, kind+"exec_time_us", took, false)
	b = append(append(append(append(append(b, `,"`...), kind...), `timing_source":"`...), source...), '"')
	algorithm, bus := r.bandwidth(rec, len(m.communicator.members))
	b = append(append(append(b, `,"`...), kind...), `algobw_gbs":`...)
	b = strconv.AppendFloat(b, algorithm, 'f', 6, 64)
	b = append(append(append(b, `,"`...), kind...), `busbw_gbs":`...)
	b = strconv.AppendFloat(b, bus, 'f', 6, 64)
	if r.Version == V50 {
		b = append(b, `,"graphCaptured":`...)
		b = strconv.AppendBool(b, rec.graph)
	}
	return append(b, "}}\n"...)
}

// bandwidth is what Inspector states, in 1e9 bytes a second.
func (r *Run) bandwidth(rec record, n int) (algorithm, bus float64) {
	v := float64(rec.operation.Bytes) / float64(rec.took) / 1e3
	ranks := float64(n)
	switch rec.operation.Name {
	case "AllReduce":
		return v, v * 2 * (ranks - 1) / ranks
	case "AllGather", "ReduceScatter":
		return v * ranks, v * (ranks - 1)
	case "Broadcast", "Reduce", "Send", "Recv":
		return v, v
	}
	return 0, 0
}

func number(b []byte, name string, v uint64, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), name...), `":`...)
	return strconv.AppendUint(b, v, 10)
}
