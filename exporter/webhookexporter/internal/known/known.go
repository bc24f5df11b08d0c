// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package known remembers the ids of the last events, so that an event that is
// sent again is recognized.
package known // import "github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/known"

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
)

// What is stored, as JSON:
//
//	ids      n: places are below this
//	i/PLACE  {"number":n,"id":"hexadecimal"}: an id, shortened by a digest
const (
	sizeKey = "ids"
	// maxSize is more than any size that New gets.
	maxSize = 10_000_000
)

func placeKey(place int) string { return "i/" + strconv.Itoa(place) }

type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// taken is an id and its number in order of arrival. The remainder of the number by
// the size is its place.
type taken struct {
	digest
	number uint64
}

type stored struct {
	Number uint64 `json:"number"`
	ID     string `json:"id"`
}

// IDs are the last ids. Safe for concurrent use.
type IDs struct {
	mu   sync.Mutex
	ring []digest
	next uint64
	// known is what is in the ring, with what ends when its event is accepted; nil
	// where it is.
	known map[digest]<-chan struct{}
	// unwritten is written with the next batch: the size, and all places after a
	// change of the size.
	unwritten map[string][]byte
}

// New returns an empty memory of that many ids.
func New(size int) *IDs {
	text, _ := json.Marshal(size) // a number
	return &IDs{
		ring: make([]digest, size), known: map[digest]<-chan struct{}{},
		unwritten: map[string][]byte{sizeKey: text},
	}
}

// put adds an id that is not in the ring, instead of the oldest. The caller holds
// k.mu.
func (k *IDs) put(d digest, done <-chan struct{}) taken {
	place := &k.ring[k.next%uint64(len(k.ring))]
	if k.next >= uint64(len(k.ring)) {
		delete(k.known, *place)
	}
	*place = d
	k.known[d] = done
	k.next++
	return taken{d, k.next - 1}
}

// Load takes over what is stored. It returns how many entries are damaged and
// left out.
func (k *IDs) Load(read func(keys []string) ([][]byte, error)) (damaged int, err error) {
	texts, err := read([]string{sizeKey})
	if err != nil || texts[0] == nil {
		return 0, err
	}
	var size int
	if json.Unmarshal(texts[0], &size) != nil || size < 0 || size > maxSize {
		return 1, nil
	}
	keys := make([]string, size)
	for place := range keys {
		keys[place] = placeKey(place)
	}
	if texts, err = read(keys); err != nil {
		return 0, err
	}
	var all []taken
	for place, text := range texts {
		if text == nil {
			continue
		}
		t, err := decode(text)
		if err != nil || t.number%uint64(size) != uint64(place) {
			damaged++
			continue
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b taken) int { return cmp.Compare(a.number, b.number) })
	k.mu.Lock()
	defer k.mu.Unlock()
	moved := size != len(k.ring)
	if !moved {
		delete(k.unwritten, sizeKey)
	}
	for place := len(k.ring); place < size; place++ {
		k.unwritten[placeKey(place)] = nil
	}
	for _, t := range all[max(0, len(all)-len(k.ring)):] {
		if !moved {
			k.next = t.number
		}
		t = k.put(t.digest, nil)
		if moved {
			k.write(t, func(key string, value []byte) { k.unwritten[key] = value })
		}
	}
	return damaged, nil
}

func decode(text []byte) (taken, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return taken{}, err
	}
	raw, err := hex.DecodeString(s.ID)
	if err != nil || len(raw) != len(digest{}) {
		return taken{}, errors.New("not an id")
	}
	return taken{digest(raw), s.Number}, nil
}

func (k *IDs) write(t taken, set func(key string, value []byte)) {
	text, _ := json.Marshal(stored{t.number, hex.EncodeToString(t.digest[:])}) // a number and a text
	set(placeKey(int(t.number%uint64(len(k.ring)))), text)
}

// Batch is the events of one call.
type Batch struct {
	ids    *IDs
	done   chan struct{}
	added  []taken
	others []<-chan struct{} // that accept an event which this batch has too
}

// Begin begins a batch, which End ends.
func (k *IDs) Begin() *Batch { return &Batch{ids: k, done: make(chan struct{})} }

// Take reports whether the event is new, and makes it known.
func (b *Batch) Take(id string) bool {
	d := digestOf(id)
	b.ids.mu.Lock()
	defer b.ids.mu.Unlock()
	if done, known := b.ids.known[d]; known {
		if done != nil && done != b.done {
			b.others = append(b.others, done)
		}
		return false
	}
	b.added = append(b.added, b.ids.put(d, b.done))
	return true
}

// Write writes the ids of the batch. It comes when its events are accepted, and
// what was refused has its record: an id that is stored before would lose these.
func (b *Batch) Write(set func(key string, value []byte)) {
	if len(b.added) == 0 {
		return
	}
	b.ids.mu.Lock()
	defer b.ids.mu.Unlock()
	for key, value := range b.ids.unwritten {
		set(key, value)
	}
	b.ids.unwritten = nil
	for _, t := range b.added {
		b.ids.write(t, set)
	}
}

// End ends the batch: its events are accepted. It waits until those that another
// batch had first are too, so that nothing is acknowledged before it is stored.
func (b *Batch) End() {
	b.ids.mu.Lock()
	for _, t := range b.added {
		if b.ids.known[t.digest] == b.done {
			b.ids.known[t.digest] = nil
		}
	}
	b.ids.mu.Unlock()
	close(b.done)
	for _, done := range b.others {
		<-done
	}
}
