// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gpucostconnector

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secret is an amount that must be in no log and in no error.
const secret = "7.31246"

func pricesFile(t *testing.T, text string, mode fs.FileMode) string {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func TestPricesFile(t *testing.T) {
	path := pricesFile(t, "- {match: {hw.model: \"*\"}, gpu_hour: "+secret+"}\n", 0o400)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.boot(func(cfg *Config) { cfg.PricesFile = path })
		b.run(10*time.Minute, chat)
		w.disk = os.ErrPermission
		b.run(20*time.Minute, chat)
		require.Error(t, b.stop())
		assert.Equal(t, secret, fmt.Sprint(w.sum("gpu.price")))
		assert.Positive(t, w.sum("gpu.usage.cost"))
		require.NotEmpty(t, b.logs.All())
		for _, entry := range b.logs.All() {
			assert.NotContains(t, fmt.Sprint(entry.Entry, entry.ContextMap()), secret)
		}
	})
}

func TestPricesFileThatIsRefused(t *testing.T) {
	good := "- {match: {hw.model: \"*\"}, gpu_hour: " + secret + "}\n"
	for _, tt := range []struct {
		text string
		mode fs.FileMode
		err  string
	}{
		{good, 0o644, "(mode 0644), and prices may be confidential: chmod 600"},
		{good, 0o640, "(mode 0640)"},
		{good, 0o602, "(mode 0602)"},
		{"", 0o600, "it has no rules"},
		{"- {gpu_hour: [" + secret + "]}", 0o600, "line 1: it is no list of rules"},
		{"- {match: {hw.model: x}, gpu_hour: -" + secret + "}\n- {match: {hw.model: y}, instance_hour: " + secret + "}", 0o600, "rule 2: gpus: it cannot be used"},
		{"- {match: {model: " + secret + "}, gpu_hour: 1}", 0o600, "rule 1: match::model: it cannot be used"},
		{"#" + strings.Repeat(secret, 16<<20/len(secret)+1), 0o600, "it is larger than 16 MiB"},
	} {
		path := pricesFile(t, tt.text, tt.mode)
		_, err := newWorld(t).tryBoot(func(cfg *Config) { cfg.PricesFile = path })
		require.ErrorContains(t, err, tt.err)
		assert.ErrorContains(t, err, "prices_file: "+path)
		assert.NotContains(t, err.Error(), secret)
	}
	_, err := newWorld(t).tryBoot(func(cfg *Config) { cfg.PricesFile = "/nowhere/prices.yaml" })
	require.ErrorContains(t, err, "prices_file: /nowhere/prices.yaml: it cannot be read: check the path")
	_, err = newWorld(t).tryBoot(func(cfg *Config) { cfg.PricesFile = t.TempDir() })
	require.ErrorContains(t, err, "it is no regular file")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = newWorld(t).tryBoot(func(cfg *Config) { cfg.PricesFile = pipe })
	require.ErrorContains(t, err, "it is no regular file")
}

// A configuration is validated before it is shipped, by others and elsewhere: what is in the
// file counts there, and that it is missing, or readable for others, at the start alone.
func TestPricesFileIsValidated(t *testing.T) {
	good := "- {match: {hw.model: \"*\"}, gpu_hour: " + secret + "}\n"
	for path, want := range map[string]string{
		pricesFile(t, good, 0o600):                                "",
		pricesFile(t, good, 0o644):                                "",
		"/nowhere/prices.yaml":                                    "",
		pricesFile(t, "- {gpu_hour: ["+secret+"]}", 0o600):        "line 1: it is no list of rules",
		pricesFile(t, strings.Replace(good, "7", "-7", 1), 0o600): "rule 1: gpu_hour: it cannot be used",
		t.TempDir(): "it is no regular file",
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.PricesFile = path
		err := cfg.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "prices_file: "+path+": "+want)
		assert.NotContains(t, err.Error(), secret)
	}
}

// info is a file of a user.
type info struct {
	fs.FileInfo
	mode fs.FileMode
	user uint32
}

func (i info) Mode() fs.FileMode { return i.mode }
func (i info) Sys() any          { return &syscall.Stat_t{Uid: i.user} }

// What Kubernetes mounts from a Secret with fsGroup belongs to root, and can be read through
// its group alone.
func TestFileOfAnotherUser(t *testing.T) {
	own, other := uint32(os.Geteuid()), uint32(os.Geteuid()+1)
	for _, tt := range []struct {
		mode    fs.FileMode
		user    uint32
		private bool
	}{
		{0o400, own, true},
		{0o440, own, false},
		{0o440, other, true},
		{0o640, other, true},
		{0o660, other, false},
		{0o444, other, false},
	} {
		assert.Equal(t, tt.private, private(info{mode: tt.mode, user: tt.user}) == nil, "%o", tt.mode)
	}
}
