// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package jobmap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	gpu = "GPU-be839661-c0f5-7452-284b-b875666df60c"
	mig = "MIG-41f3a1a5-5d1a-5a86-b7a5-1d6b4f0b2c11"
)

func TestFormats(t *testing.T) {
	at := func(indices ...int) (all []Device) {
		for _, i := range indices {
			all = append(all, Device{Index: i})
		}
		return all
	}
	own := func(more string) string { return `{"v":1,"job":7` + more + `}` }
	for name, c := range map[string]struct {
		format, file, text string
		want               []Job
		reason             Reason
	}{
		"all there is": {
			"otelcol-gpu", "7.json",
			own(`,"sluid":"sEKN1","uid":1001,"user":"ada","account":"physics","partition":"gpu","qos":"high","cluster":"hpc","restarts":2,"comment":"a b","gpus":"0,11","visible":"0,11"`),
			[]Job{{
				ID: "7", UID: 1001, SLUID: "sEKN1", User: "ada", Account: "physics", Partition: "gpu", QOS: "high", Cluster: "hpc", Restarts: "2",
				Comment: "a b", Devices: at(0, 11),
			}},
			"",
		},
		"a UUID wins":             {"otelcol-gpu", "7.json", own(`,"gpus":"3","visible":"` + gpu + `"`), []Job{{ID: "7", UID: -1, Devices: []Device{{Index: 3, UUID: gpu}}}}, ""},
		"MIG":                     {"otelcol-gpu", "7.json", own(`,"gpus":"3,4","visible":"` + mig + `"`), []Job{{ID: "7", UID: -1, Devices: []Device{{Index: -1, UUID: mig}}}}, ""},
		"of UUIDs and an index":   {"otelcol-gpu", "7.json", own(`,"gpus":"3,4","visible":"` + gpu + `,1"`), []Job{{ID: "7", UID: -1, Devices: at(3, 4)}}, ""},
		"CRLF":                    {"otelcol-gpu", "7.json", own(`,"gpus":"3"`) + "\r\n", []Job{{ID: "7", UID: -1, Devices: at(3)}}, ""},
		"half a file":             {"otelcol-gpu", "7.json", `{"v":1,"jo`, nil, HalfWritten},
		"an empty file":           {"otelcol-gpu", "7.json", "", nil, HalfWritten},
		"two objects":             {"otelcol-gpu", "7.json", own("") + own(""), nil, BadValue},
		"not UTF-8":               {"otelcol-gpu", "7.json", own(`,"user":"a` + "\xff" + `"`), nil, NotText},
		"a comment not UTF-8":     {"otelcol-gpu", "7.json", own(`,"comment":"a` + "\xff" + `","gpus":"1"`), []Job{{ID: "7", UID: -1, Devices: at(1)}}, ""},
		"another version":         {"otelcol-gpu", "7.json", `{"v":2,"job":7}`, nil, BadVersion},
		"no version":              {"otelcol-gpu", "7.json", `{"v":"1","job":7}`, nil, BadVersion},
		"no number":               {"otelcol-gpu", "7.json", `{"v":1,"job":"7_1"}`, nil, BadID},
		"of another job":          {"otelcol-gpu", "8.json", own(""), nil, BadID},
		"no number in its name":   {"otelcol-gpu", "x.json", own(""), nil, BadName},
		"indices of another kind": {"otelcol-gpu", "7.json", own(`,"gpus":"a-b"`), nil, BadValue},
		"a number as a name":      {"otelcol-gpu", "7.json", own(`,"user":7`), nil, BadValue},
		"a long name":             {"otelcol-gpu", "7.json", own(`,"user":"` + strings.Repeat("a", 300) + `"`), nil, BadValue},

		"dcgm":                 {"dcgm", "3", "17\n18\n", []Job{{ID: "17", UID: -1, Devices: []Device{{Index: 3, ByPCI: true}}}, {ID: "18", UID: -1, Devices: []Device{{Index: 3, ByPCI: true}}}}, ""},
		"dcgm, a GPU instance": {"dcgm", "3.9", "17", []Job{{ID: "17", UID: -1, Devices: []Device{{Index: 3, ByPCI: true, Instance: "9"}}}}, ""},
		"dcgm, no job":         {"dcgm", "3", "", nil, ""},
		"dcgm, no number":      {"dcgm", "3", "none\n", nil, BadID},
		"dcgm, another name":   {"dcgm", "3.x", "1", nil, BadName},
		"ceems":                {"ceems", "0", "017 \r\n", []Job{{ID: "17", UID: -1, Devices: at(0)}}, ""},
		"ceems, an instance":   {"ceems", "0.1", "17", nil, BadName},
		"jobstats":             {"jobstats", "6", "17 1001\n", []Job{{ID: "17", UID: 1001, Devices: at(6)}}, ""},
		"jobstats, MIG":        {"jobstats", mig, "17 1001\n", []Job{{ID: "17", UID: 1001, Devices: []Device{{Index: -1, UUID: mig}}}}, ""},
		"jobstats, no user":    {"jobstats", "6", "17 ada\n", nil, BadValue},
		"amd": {
			"amd", "2", `{"SLURM_JOB_ID":"17","SLURM_JOB_USER":"ada","SLURM_JOB_PARTITION":"mi300","SLURM_CLUSTER_NAME":"hpc","SLURM_JOB_GPUS":"2"}`,
			[]Job{{ID: "17", UID: -1, User: "ada", Partition: "mi300", Cluster: "hpc", Devices: at(2)}}, "",
		},
		"amd, between jobs": {"amd", "2", `{"SLURM_JOB_ID":""}`, nil, ""},
		"amd, a list":       {"amd", "2", `[]`, nil, BadValue},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, err := Formats[c.format].Parse(c.file, []byte(c.text))
			if c.reason != "" {
				require.Error(t, err)
				assert.Equal(t, c.reason, ReasonOf(err), err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, jobs)
		})
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"train\n\n\n":              "train",
		"train\n17\n3\n":           "train 17 3",
		"train\n17\n\n":            "train",
		"train\n17\n3":             "",
		"":                         "",
		"\n\n\n":                   "",
		"a\xff\n\n\n":              "",
		"tr\x1b[2Jain\n0\n1\nmore": "tr[2Jain",
	} {
		job, array, task, complete := parseName([]byte(text))
		assert.Equal(t, want, strings.TrimSpace(job+" "+array+" "+task), "%q", text)
		assert.Equal(t, want != "", complete, "%q", text)
	}
}

func folder(t *testing.T, format string) *Folder {
	t.Helper()
	f := &Folder{Path: t.TempDir(), Format: Formats[format], MaxFiles: 10, MaxFileSize: 1 << 10}
	require.NoError(t, os.Mkdir(filepath.Join(f.Path, "names"), 0o755))
	return f
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(path...), []byte(text), 0o644))
}

func TestOneBadFileCostsNoOther(t *testing.T) {
	f := folder(t, "otelcol-gpu")
	good := `{"v":1,"job":%d,"gpus":"0"}`
	write(t, fmt.Sprintf(good, 9), f.Path, "9.json")
	write(t, fmt.Sprintf(good, 10), f.Path, "10.json")
	write(t, "{", f.Path, "2.json")
	write(t, "x", f.Path, ".9.tmp")
	write(t, "x", f.Path, "README")
	write(t, strings.Repeat(" ", 2000), f.Path, "3.json")
	write(t, fmt.Sprintf(good, 4), f.Path, "elsewhere")
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(f.Path, "4.json")))
	require.NoError(t, os.Mkdir(filepath.Join(f.Path, "5.json"), 0o755))
	future := time.Now().Add(time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(f.Path, "9.json"), future, future))

	r, err := f.Read(time.Now())
	require.NoError(t, err)
	require.Len(t, r.Jobs, 2)
	assert.Equal(t, []string{"9", "10"}, []string{r.Jobs[0].ID, r.Jobs[1].ID})
	assert.True(t, r.Incomplete)
	found := map[string]Reason{}
	for _, one := range r.Findings {
		found[one.File] = ReasonOf(one.Err)
	}
	assert.Equal(t, map[string]Reason{"2.json": HalfWritten, "3.json": TooLarge, "4.json": Link, "9.json": Clock}, found)

	r, err = f.Read(time.Now())
	require.NoError(t, err)
	assert.Empty(t, r.Findings, "each counts once")
	assert.True(t, r.Incomplete)

	for _, name := range []string{"2.json", "3.json", "4.json"} {
		require.NoError(t, os.Remove(filepath.Join(f.Path, name)))
	}
	r, err = f.Read(time.Now())
	require.NoError(t, err)
	assert.False(t, r.Incomplete)
	f.MaxFiles = 1
	r, err = f.Read(time.Now())
	require.NoError(t, err)
	assert.True(t, r.Incomplete)
	require.Len(t, r.Findings, 1)
	assert.Equal(t, FilesLimit, ReasonOf(r.Findings[0].Err))
}

func TestDevicesOfSeveralFilesAreOneJob(t *testing.T) {
	f := folder(t, "dcgm")
	write(t, "7\n", f.Path, "0")
	write(t, "7\n8\n", f.Path, "1")
	r, err := f.Read(time.Now())
	require.NoError(t, err)
	require.Len(t, r.Jobs, 2)
	assert.Equal(t, []Device{{Index: 0, ByPCI: true}, {Index: 1, ByPCI: true}}, r.Jobs[0].Devices)
	assert.Equal(t, []Device{{Index: 1, ByPCI: true}}, r.Jobs[1].Devices)
}

func TestANameOfAnotherUserIsRefused(t *testing.T) {
	f := folder(t, "otelcol-gpu")
	for id, uid := range map[int]int{1: os.Getuid(), 2: os.Getuid() + 1} {
		write(t, fmt.Sprintf(`{"v":1,"job":%d,"uid":%d,"gpus":"0"}`, id, uid), f.Path, fmt.Sprintf("%d.json", id))
		write(t, "train\n\n\n", f.Path, "names", fmt.Sprint(id))
	}
	write(t, `{"v":1,"job":3,"uid":0,"gpus":"0"}`, f.Path, "3.json")
	require.NoError(t, os.Symlink("1", filepath.Join(f.Path, "names", "3")))
	for again := range 2 {
		r, err := f.Read(time.Now())
		require.NoError(t, err)
		assert.Equal(t, []string{"train", "", ""}, []string{r.Jobs[0].Name, r.Jobs[1].Name, r.Jobs[2].Name})
		if again == 1 {
			assert.Empty(t, r.Findings)
			continue
		}
		require.Len(t, r.Findings, 2)
		assert.Equal(t, []Reason{Owner, Link}, []Reason{ReasonOf(r.Findings[0].Err), ReasonOf(r.Findings[1].Err)})
	}
}

// The job's user may rewrite the file for as long as the job runs, and each name would be another
// series. A rerun of the job may have another name: Prolog has written another file for it.
func TestTheFirstCompleteNameOfARunCounts(t *testing.T) {
	f := folder(t, "otelcol-gpu")
	run := func() {
		write(t, fmt.Sprintf(`{"v":1,"job":1,"uid":%d,"gpus":"0"}`, os.Getuid()), f.Path, ".1")
		require.NoError(t, os.Rename(filepath.Join(f.Path, ".1"), filepath.Join(f.Path, "1.json")))
	}
	run()
	for _, step := range []struct{ written, name, task string }{
		{"tra", "", ""}, {"train\n4700\n7\n", "train", "7"}, {"other\n4700\n8\n", "train", "7"}, {"", "train", "7"},
	} {
		write(t, step.written, f.Path, "names", "1")
		r, err := f.Read(time.Now())
		require.NoError(t, err)
		assert.Equal(t, []string{step.name, step.task}, []string{r.Jobs[0].Name, r.Jobs[0].ArrayTaskID}, "%q", step.written)
	}
	run()
	write(t, "again\n\n\n", f.Path, "names", "1")
	r, err := f.Read(time.Now())
	require.NoError(t, err)
	assert.Equal(t, "again", r.Jobs[0].Name)
}

func TestAFolderOfNamesThatOthersMayChange(t *testing.T) {
	f := folder(t, "otelcol-gpu")
	write(t, fmt.Sprintf(`{"v":1,"job":1,"uid":%d,"gpus":"0"}`, os.Getuid()), f.Path, "1.json")
	write(t, "train\n\n\n", f.Path, "names", "1")
	require.NoError(t, os.Chmod(filepath.Join(f.Path, "names"), 0o777))
	r, err := f.Read(time.Now())
	require.NoError(t, err)
	assert.Empty(t, r.Jobs[0].Name)
	require.Len(t, r.Findings, 1)
	assert.Equal(t, Owner, ReasonOf(r.Findings[0].Err))
}

func TestAFolderThatOthersMayChange(t *testing.T) {
	f := folder(t, "otelcol-gpu")
	require.NoError(t, f.Check())
	require.NoError(t, os.Chmod(f.Path, 0o775))
	require.ErrorIs(t, f.Check(), ErrUnsafe)
	require.NoError(t, os.Chmod(f.Path, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(f.Path), 0o777))
	require.ErrorIs(t, f.Check(), ErrUnsafe, "it can be replaced")
	require.NoError(t, os.Chmod(filepath.Dir(f.Path), 0o777|os.ModeSticky))
	require.NoError(t, f.Check())
	f.Path += "/none"
	require.ErrorIs(t, f.Check(), os.ErrNotExist)
}

// FuzzParse: no file makes a parser fail, and what comes out is bounded text.
func FuzzParse(f *testing.F) {
	for format := range Formats {
		f.Add(format, "7.json", []byte(`{"v":1,"job":7,"gpus":"0,1","visible":"`+gpu+`","user":"ada"}`))
		f.Add(format, "3.1", []byte("17 1001\r\n18\n"))
		f.Add(format, "2", []byte(`{"SLURM_JOB_ID":17,"SLURM_JOB_USER":"ada"}`))
	}
	f.Fuzz(func(t *testing.T, format, file string, text []byte) {
		parseName(text)
		one := Formats[format]
		if one == nil || file == "" || !one.is(file) {
			return
		}
		jobs, err := one.Parse(file, text)
		if err != nil {
			assert.NotEqual(t, Unreadable, ReasonOf(err))
			assert.Empty(t, jobs)
		}
		for _, j := range jobs {
			_, err := jobID(j.ID)
			require.NoError(t, err)
			for _, s := range []string{j.User, j.Account, j.Partition, j.QOS, j.Cluster, j.SLUID} {
				assert.True(t, utf8.ValidString(s) && len(s) <= maxText, "%q", s)
			}
			assert.LessOrEqual(t, len(j.Devices), maxDevices)
			for _, d := range j.Devices {
				assert.True(t, d.UUID != "" || d.Index >= 0 && d.Index <= maxIndex, "%+v", d)
			}
		}
	})
}
