// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-gpu/otelcol-gpu/exporter/webhookexporter/internal/endpoint"
)

// folder is a folder of receiver files.
type folder struct {
	*Dir
	t *testing.T
}

func newFolder(t *testing.T, taken ...string) *folder {
	names := map[string]bool{}
	for _, name := range taken {
		names[name] = true
	}
	return &folder{NewDir(t.TempDir(), names, openGuard(t), endpoint.Defaults{}), t}
}

func (f *folder) write(name, content string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.path, name), []byte(content), 0o600))
}

func (f *folder) link(to, name string) {
	f.t.Helper()
	require.NoError(f.t, os.Symlink(to, filepath.Join(f.path, name)))
}

func (f *folder) remove(name string) {
	f.t.Helper()
	require.NoError(f.t, os.RemoveAll(filepath.Join(f.path, name)))
}

// look scans and returns receivers as "name host" and findings as "name reason".
func (f *folder) look() (receivers, findings []string) {
	f.t.Helper()
	s, err := f.Scan()
	require.NoError(f.t, err)
	for _, t := range s.Targets {
		receivers = append(receivers, t.Name+" "+t.Host)
	}
	for _, found := range s.Findings {
		text := found.Name + " " + string(found.Reason)
		if found.kept {
			text += " kept"
		}
		findings = append(findings, text)
	}
	return receivers, findings
}

func TestFolderOfEverything(t *testing.T) {
	f := newFolder(t, "configured")
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("https://outside.example.com/"), 0o600))
	f.write("plain", "https://plain.example.com/x")
	f.write("full.json", `{"url": "https://full.example.com/x", "timeout": "10s"}`)
	f.write("slow", `{"url": "https://slow.example.com/x", "timeout": "never"}`)
	f.write(".hidden", "https://hidden.example.com/")
	f.write("..hidden", "https://hidden.example.com/")
	f.write("configured", "https://other.example.com/")
	f.write("empty", "")
	f.write("broken", "{")
	f.write("no-url", "{}")
	f.write("binary", "\x00\x01\x02")
	f.write("huge", strings.Repeat("x", maxReceiverFile+1))
	f.write("bad name", "https://name.example.com/")
	f.write("https:\\\\x", "https://name.example.com/")
	f.write("bad-key", `{"url": "https://key.example.com/", "signing": {"standard": ["whsec_AAAA"]}}`)
	f.write("full-size", "https://size.example.com/"+strings.Repeat("x", maxReceiverFile-25))
	require.NoError(t, os.Mkdir(filepath.Join(f.path, "folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(f.path, "pipe"), 0o600))
	f.link("plain", "link")
	f.link("folder/../full.json", "winding-link")
	f.link(outside, "absolute")
	f.link("../"+filepath.Base(filepath.Dir(outside))+"/secret", "relative")
	f.link("/etc/passwd", "passwd")
	f.link(filepath.Join(f.path, "plain"), "absolute-inside")
	f.link("loop", "loop")
	f.link("/dev/zero", "zero")
	f.link("folder", "folder-link")

	receivers, findings := f.look()
	assert.Equal(t, []string{
		"full-size size.example.com", "full.json full.example.com", "link plain.example.com", "plain plain.example.com",
		"slow slow.example.com", "winding-link full.example.com",
	}, receivers)
	assert.ElementsMatch(t, []string{
		"slow ",
		"absolute outside_folder", "absolute-inside outside_folder", "relative outside_folder", "passwd outside_folder", "zero outside_folder",
		"bad name invalid_name", "https:\\\\x invalid_name", "configured name_in_receivers",
		"empty empty_value", "broken invalid_json", "no-url empty_url_in_json", "binary not_text", "huge too_large", "bad-key invalid_receiver",
		"folder not_a_file", "folder-link not_a_file", "pipe not_a_file", "loop not_a_file",
	}, findings)

	again, findings := f.look()
	assert.Equal(t, receivers, again)
	assert.Empty(t, findings, "each cause is reported once")
}

func TestNotReadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	f := newFolder(t)
	f.write("locked", "https://x.example.com/")
	require.NoError(t, os.Chmod(filepath.Join(f.path, "locked"), 0))
	receivers, findings := f.look()
	assert.Empty(t, receivers)
	assert.Equal(t, []string{"locked unreadable"}, findings)
}

// A link that leads nowhere is what Kubernetes leaves for a moment when it takes
// a key away. One that still leads nowhere is logged.
func TestLinkThatLeadsNowhere(t *testing.T) {
	f := newFolder(t)
	f.link("..data/ops", "ops")
	for range passingScans - 1 {
		s, err := f.Scan()
		require.NoError(t, err)
		assert.True(t, s.again)
		assert.Empty(t, s.Findings)
	}
	s, err := f.Scan()
	require.NoError(t, err)
	require.Len(t, s.Findings, 1)
	assert.Equal(t, skipUnreadable, s.Findings[0].Reason)
	assert.False(t, s.again, "it is reported, and no longer waited for")
	_, findings := f.look()
	assert.Empty(t, findings)
}

// Kubernetes mounts a ConfigMap or Secret as links through ..data, and swaps
// that for another folder.
func TestKubernetesSwap(t *testing.T) {
	f := newFolder(t)
	mount := func(version string, files map[string]string) {
		require.NoError(t, os.Mkdir(filepath.Join(f.path, "..v"+version), 0o700))
		for name, content := range files {
			f.write("..v"+version+"/"+name, content)
		}
		f.link("..v"+version, "..data_tmp")
		require.NoError(t, os.Rename(filepath.Join(f.path, "..data_tmp"), filepath.Join(f.path, "..data")))
		for name := range files {
			if _, err := os.Lstat(filepath.Join(f.path, name)); err != nil {
				f.link("..data/"+name, name)
			}
		}
	}
	mount("1", map[string]string{"ops": "https://one.example.com/", "pager": "https://pager.example.com/"})
	receivers, findings := f.look()
	assert.Equal(t, []string{"ops one.example.com", "pager pager.example.com"}, receivers)
	assert.Empty(t, findings)

	mount("2", map[string]string{"ops": "https://two.example.com/", "new": "https://new.example.com/"})
	f.remove("..v1")
	receivers, findings = f.look() // the link of the key that went is still there
	assert.Equal(t, []string{"new new.example.com", "ops two.example.com", "pager pager.example.com"}, receivers)
	assert.Empty(t, findings)
	f.remove("pager")
	receivers, findings = f.look()
	assert.Equal(t, []string{"new new.example.com", "ops two.example.com"}, receivers)
	assert.Empty(t, findings)
}

// A file that was fine keeps its receiver until it is fine again or gone:
// nothing that is written into it meanwhile changes what is sent, or unsigned.
func TestBrokenFileKeepsItsReceiver(t *testing.T) {
	f := newFolder(t)
	signed := func(key string) string {
		return fmt.Sprintf(`{"url": "https://ops.example.com/", "signing": {"standard": [%q]}}`, key)
	}
	keys := func() []string {
		s, err := f.Scan()
		require.NoError(t, err)
		require.Len(t, s.Targets, 1)
		return s.Targets[0].Signer.KeyIDs
	}
	f.write("ops", signed(goodKey))
	before := keys()
	require.Len(t, before, 1)
	for _, broken := range []string{
		"", "{", signed(goodKey)[:40], signed("whsec_broken"), signed(""), "\x00", "https://[", strings.Repeat("x", maxReceiverFile+1),
		`{"url": "https://ops.example.com/", "signing": {}}`,
	} {
		f.write("ops", broken)
		assert.Equal(t, before, keys())
	}
	f.remove("ops")
	require.NoError(t, os.Mkdir(filepath.Join(f.path, "ops"), 0o700))
	assert.Equal(t, before, keys())
	f.remove("ops")
	f.link("/etc/passwd", "ops")
	assert.Equal(t, before, keys())
	f.remove("ops")

	f.write("ops", signed(otherKey))
	after := keys()
	assert.NotEqual(t, before, after)
	f.write("ops", "{")
	assert.Equal(t, after, keys())
	f.remove("ops")
	receivers, _ := f.look()
	assert.Empty(t, receivers)
	f.write("ops", "{")
	receivers, findings := f.look()
	assert.Empty(t, receivers, "what is gone is forgotten")
	assert.Equal(t, []string{"ops invalid_json"}, findings)
}

func TestEachNewFaultIsLogged(t *testing.T) {
	f := newFolder(t)
	steps := []struct{ content, want string }{
		{"{", "ops invalid_json"},
		{"{", ""},
		{"{{", "ops invalid_json"},
		{"", "ops empty_value"},
		{"https://ops.example.com/", ""},
		{"", "ops empty_value kept"},
		{"{", "ops invalid_json kept"},
		{"https://ops.example.com/", ""},
		{"{", "ops invalid_json kept"},
	}
	for i, step := range steps {
		f.write("ops", step.content)
		_, findings := f.look()
		assert.Equal(t, step.want, strings.Join(findings, ","), "step %d", i)
	}
}

func TestFileReplacedInMidRead(t *testing.T) {
	f := newFolder(t)
	f.write("ops", "https://one.example.com/")
	replacement := filepath.Join(t.TempDir(), "new")
	swaps := 0
	f.duringRead = func(name string) {
		if swaps++; swaps == 1 {
			require.NoError(t, os.WriteFile(replacement, []byte("https://two.example.com/"), 0o600))
			require.NoError(t, os.Rename(replacement, filepath.Join(f.path, name)))
		}
	}
	receivers, _ := f.look()
	assert.Equal(t, []string{"ops two.example.com"}, receivers)
	assert.Equal(t, 2, swaps)

	content := "https://three.example.com/"
	f.duringRead = func(name string) {
		content += "x" // of another length, as the clock of a file system may stand still that long
		f.write(name, content)
	}
	s, err := f.Scan()
	require.NoError(t, err)
	require.Len(t, s.Targets, 1)
	assert.Equal(t, "two.example.com", s.Targets[0].Host, "what never holds still changes nothing")
	assert.True(t, s.again)

	f.duringRead = func(name string) { f.remove(name) }
	s, err = f.Scan()
	require.NoError(t, err)
	require.Len(t, s.Targets, 1)
	assert.True(t, s.again)
	f.duringRead = nil
	receivers, findings := f.look()
	assert.Empty(t, receivers)
	assert.Empty(t, findings)
}

func TestFileJustWrittenIsLeftToSettle(t *testing.T) {
	f := newFolder(t)
	f.write("ops", "https://one.example.com/")
	receivers, _ := f.look()
	assert.Len(t, receivers, 1, "at the start every file is taken")

	written := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	f.settle = time.Second
	f.write("ops", "https://two.exam") // the rest is to come
	require.NoError(t, os.Chtimes(filepath.Join(f.path, "ops"), written, written))
	f.now = func() time.Time { return written.Add(999 * time.Millisecond) }
	s, err := f.Scan()
	require.NoError(t, err)
	assert.Equal(t, "one.example.com", s.Targets[0].Host)
	assert.True(t, s.again)

	f.write("ops", "https://two.example.com/")
	require.NoError(t, os.Chtimes(filepath.Join(f.path, "ops"), written, written))
	f.now = func() time.Time { return written.Add(time.Second) }
	receivers, _ = f.look()
	assert.Equal(t, []string{"ops two.example.com"}, receivers)

	f.write("ops", "https://three.example.com/")
	require.NoError(t, os.Chtimes(filepath.Join(f.path, "ops"), written.Add(time.Hour), written.Add(time.Hour)))
	receivers, _ = f.look()
	assert.Equal(t, []string{"ops three.example.com"}, receivers, "a clock that is ahead does not shut a file out")
}

func TestFolderIsBounded(t *testing.T) {
	f := newFolder(t)
	const extra = 5
	for i := range maxReceiverFiles {
		f.write(fmt.Sprintf("m%04d", i), "https://x.example.com/")
	}
	receivers, findings := f.look()
	assert.Len(t, receivers, maxReceiverFiles)
	assert.Empty(t, findings)
	for i := range extra {
		f.write(fmt.Sprintf("a%04d", i), "https://x.example.com/")
	}
	again, findings := f.look()
	assert.Equal(t, receivers, again, "a new file does not take the place of one in use")
	assert.Len(t, findings, extra)
	f.remove("m0000")
	receivers, findings = f.look()
	assert.Len(t, receivers, maxReceiverFiles)
	assert.Contains(t, receivers, "a0000 x.example.com")
	assert.Empty(t, findings)
}

func TestMissingFolder(t *testing.T) {
	f := newFolder(t)
	f.write("ops", "https://one.example.com/")
	f.look()
	require.NoError(t, os.Rename(f.path, f.path+".gone"))
	_, err := f.Scan()
	assert.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.Rename(f.path+".gone", f.path))
	receivers, findings := f.look()
	assert.Len(t, receivers, 1)
	assert.Empty(t, findings)

	f.path = filepath.Join(f.path, "ops")
	_, err = f.Scan()
	assert.Error(t, err, "a file is no folder")
}
