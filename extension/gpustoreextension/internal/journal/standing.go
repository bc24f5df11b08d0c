// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package journal // import "github.com/otelcol-gpu/otelcol-gpu/extension/gpustoreextension/internal/journal"

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/otelcol-gpu/otelcol-gpu/internal/durable/lines"
)

// standing are the entries that no later one ended.
type standing[T any] struct {
	newest  map[string]*T // by key
	carried []line[T]     // those for which kept has no room, oldest first
	bytes   int64         // of carried
}

// note takes down what an entry that is being kept begins or ends. The caller holds mu.
func (j *Journal[T]) note(entry *T) {
	if j.options.Standing == nil {
		return
	}
	key, stands := j.options.Standing(entry)
	if key == "" {
		return
	}
	if before := j.newest[key]; before != nil {
		j.drop(before)
	}
	if stands {
		j.newest[key] = entry
	}
}

// drop ends what stands. Where it is carried it goes. The caller holds mu.
func (j *Journal[T]) drop(entry *T) {
	key, _ := j.options.Standing(entry)
	delete(j.newest, key)
	i, found := slices.BinarySearchFunc(j.carried, *j.options.Sequence(entry), func(l line[T], n uint64) int {
		return cmp.Compare(*j.options.Sequence(l.entry), n)
	})
	if found {
		j.standing.bytes -= int64(j.carried[i].size)
		delete(j.known, j.options.ID(entry))
		j.carried = slices.Delete(j.carried, i, i+1)
	}
}

// letGo carries an entry that kept has no room for if it stands. Of more than a
// quarter of what is kept the oldest go. The caller holds mu.
func (j *Journal[T]) letGo(l line[T]) {
	stands := false
	if j.options.Standing != nil {
		key, _ := j.options.Standing(l.entry)
		stands = key != "" && j.newest[key] == l.entry
	}
	if !stands {
		delete(j.known, j.options.ID(l.entry))
		return
	}
	j.carried = append(j.carried, l)
	j.standing.bytes += int64(l.size)
	for len(j.carried) > max(1, j.options.MaxEntries/4) || j.standing.bytes > j.options.MaxBytes/4 {
		j.drop(j.carried[0].entry)
	}
}

// standingLines are the lines of what stands.
func (j *Journal[T]) standingLines() ([]byte, error) {
	j.mu.RLock()
	var entries []*T
	for _, entry := range j.newest {
		entries = append(entries, entry)
	}
	j.mu.RUnlock()
	slices.SortFunc(entries, func(a, b *T) int { return cmp.Compare(*j.options.Sequence(a), *j.options.Sequence(b)) })
	var text []byte
	for _, entry := range entries { // nothing changes an entry that is kept
		line, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		text = append(append(text, line...), '\n')
	}
	return text, nil
}

func (s *segments) standingPath() string { return s.names.Stem + "-standing.jsonl" }

// saveStanding writes down what stands, before the file that has it may go.
func (s *segments) saveStanding() error {
	text, err := s.standing()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		if err = os.Remove(s.standingPath()); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	return lines.Replace(s.standingPath(), text, 0o640)
}
