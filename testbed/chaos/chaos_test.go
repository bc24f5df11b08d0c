// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.." // of the repository

// A bounded run: the opening rounds, with a fixed seed. `make chaos` is the long
// form.
func TestChaos(t *testing.T) {
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(bin, "otelcol-gpu"), "run make build")
	out := &shared{}
	dir := t.TempDir()
	err = Run(t.Context(), Options{
		Bin: bin, Config: filepath.Join(root, "config"), Dir: dir, Duration: 95 * time.Second, Seed: 1, Out: io.MultiWriter(out, os.Stdout),
	})
	require.NoError(t, err, out.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := lines[len(lines)-1]
	assert.True(t, strings.HasSuffix(last, ", 0 violations"), last)
	assert.NotContains(t, last, " 0 points", "nothing was judged")
	assert.NotContains(t, last, " 0 events", "nothing was told")
}

// shared is a buffer that several may write to.
type shared struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
