// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package nvmllab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Driver is a driver whose symbols and layouts the fake library can have.
type Driver struct {
	Name    string // of Options
	Version string
	Number  int // major * 1000 + minor, for the C source
}

// Drivers are those where something differs.
var Drivers = []Driver{
	{"450", "450.51.06", 450051},
	{"510", "510.39.01", 510039},
	{"535.86", "535.86.05", 535086},   // entries of 32 bytes in process lists
	{"535.98", "535.98", 535098},      // no third version of process lists
	{"535.104", "535.104.05", 535104}, // entries of 24 bytes again
	{"550", "550.127.08", 550127},     // entries of 16 bytes
	{"575", "575.51.02", 575051},      // fields that have moved
	{"590", "590.44.01", 590044},      // without a symbol that others have
	{"610", "610.43.03", 610043},      // GPM lists of 333
}

func findDriver(t testing.TB, name string) Driver {
	t.Helper()
	if name == "" {
		name = "550"
	}
	for _, d := range Drivers {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("unknown driver %q", name)
	return Driver{}
}

// built are the libraries and the helper of this test binary.
var built struct {
	sync.Mutex
	libraries map[int][]byte
	helper    []byte
}

// install puts the library of a driver where the laboratory has it.
func (l *Lab) install(d Driver) {
	l.t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.libraries[d.Number] == nil {
		folder := l.t.TempDir()
		out, err := exec.Command(filepath.Join(here(l.t), "fakelib", "build"), strconv.Itoa(d.Number), folder).CombinedOutput()
		require.NoError(l.t, err, "the fake library needs a C compiler (scripts/requirements): %s", out)
		text, err := os.ReadFile(filepath.Join(folder, "libnvidia-ml.so.1"))
		require.NoError(l.t, err)
		if built.libraries == nil {
			built.libraries = map[int][]byte{}
		}
		built.libraries[d.Number] = text
	}
	require.NoError(l.t, os.MkdirAll(l.folder, 0o755))
	l.executable(l.Library+".new", built.libraries[d.Number])
	require.NoError(l.t, os.Rename(l.Library+".new", l.Library))
}

// Helper is the path of the helper, which is built when it is first asked for.
func (l *Lab) Helper() string {
	l.t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.helper == nil {
		path := filepath.Join(l.t.TempDir(), "otelcol-gpu-nvml")
		cmd := exec.Command("go", "build", "-o", path, "./cmd/otelcol-gpu-nvml")
		cmd.Dir = filepath.Join(here(l.t), "..", "..")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(l.t, err, "%s", out)
		built.helper, err = os.ReadFile(path)
		require.NoError(l.t, err)
	}
	path := filepath.Join(l.folder, "otelcol-gpu-nvml")
	if _, err := os.Stat(path); err != nil {
		l.executable(path, built.helper)
	}
	return path
}

// executable writes a file while no process starts, which would have it open for writing
// as well for a moment: then it could not be executed.
func (l *Lab) executable(path string, text []byte) {
	l.t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(l.t, os.WriteFile(path, text, 0o755))
}

// here is the folder of this package, from that of the test that runs.
func here(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for ; folder != "/"; folder = filepath.Dir(folder) {
		for _, below := range []string{"testbed/nvml", "nvml"} {
			if _, err := os.Stat(filepath.Join(folder, below, "fakelib", "build")); err == nil {
				return filepath.Join(folder, below)
			}
		}
	}
	t.Fatal("the test does not run in the repository")
	return ""
}
