// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pagetext

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"github.com/otelcol-gpu/otelcol-gpu/internal/devicemap"
)

var target = Options{Job: "dcgm", Instance: "node-a:9400"}

// read reads lines as one page and returns the rows as text.
func read(t testing.TB, r *Reader, lines ...string) (rows []string, result Result) {
	t.Helper()
	got, result, err := r.Read([]byte(strings.Join(lines, "\n")+"\n"), nil)
	require.NoError(t, err)
	return texts(got), result
}

func texts(rows []devicemap.Row) []string {
	list := []string{}
	for _, row := range rows {
		list = append(list, fmt.Sprint(row.Series, " ", row.Value))
	}
	return list
}

func refused(r Result) map[string]int {
	got := map[string]int{}
	for reason, n := range r.Refused {
		if n > 0 {
			got[vendor.Reason(devicemap.Reason(reason))] = n
		}
	}
	return got
}

// TestLines has one row a form of a line, and what it becomes; "" is nothing, and
// "bad" a line that is refused.
func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		`A 1`:                               `A 1`,
		`A{x="1"} 1`:                        `A{x="1"} 1`,
		`A{x="1",} 1`:                       `A{x="1"} 1`,
		`A {x="1"} 1`:                       `A{x="1"} 1`,
		"\tA\t{ x = \"1\" , y=\"2\" } \t1 ": `A{x="1",y="2"} 1`,
		`A{y="2" x="1"} 1`:                  `A{x="1",y="2"} 1`, // dcgm-exporter 2.x left commas out
		`A{} 1`:                             `A 1`,
		`A{x=""} 1`:                         `A 1`,
		`A 1 1700000000000`:                 `A 1`,
		`A 1 -5`:                            `bad`,
		`A 1 1.5`:                           `bad`,
		`A 1 2 3`:                           `bad`,
		`A 1 `:                              `A 1`,
		`A-1 5`:                             `A -1`,
		`A{x="1"}-1 5`:                      `A{x="1"} -1`,
		`A -1.5e3`:                          `A -1500`,
		`A +Inf`:                            `A +Inf`,
		`A NaN`:                             `A NaN`,
		`A 0x1p4`:                           `bad`,
		`A 1_0`:                             `bad`,
		`A 1e999`:                           `bad`,
		`A`:                                 `bad`,
		`A{x="1"}`:                          `bad`,
		`A NVIDIA H100`:                     `bad`,
		`A ERROR - FAILED TO CONVERT`:       `bad`,
		`A{x="say "hi""} 1`:                 `bad`,
		`A{x="\"}\\ \n"} 1`:                 `A{x="\"}\\ \n"} 1`,
		`A{x="{,}"} 1`:                      `A{x="{,}"} 1`,
		`A{x="1",x="2"} 1`:                  `bad`,
		"A{x=\"\xff\"} 1":                   `bad`,
		"A 1\r":                             `A 1`,
		"A{x=\"1\"} 1 5\r":                  `A{x="1"} 1`,
		"A 1\r\r":                           `bad`,
		"\r":                                ``,
		"# TYPE A gauge\r":                  ``,
		`A 1 # {trace_id="a b"} 1 1.5`:      `A 1`,
		`A{x="1"} 7 # {} 1`:                 `A{x="1"} 7`,
		`A{x="a # {b"} 1`:                   `A{x="a # {b"} 1`,
		`A{x="a # {b"} 1 5 # {y=" # {"} 1`:  `A{x="a # {b"} 1`,
		`A 1 # text`:                        `bad`,
		`A # {x="1"} 1`:                     `bad`,
		`A{ x="1"} 1 # {y="2"} 1`:           `A{x="1"} 1`,
		"A 1\x00":                           `bad`,
		`...`:                               `bad`,
		`1`:                                 `bad`,
		`{"A.b",x="1"} 1`:                   `A.b{x="1"} 1`,
		`{x="1"} 1`:                         `bad`,
		`A{job="j",instance="i"} 1`:         `A{exported_instance="i",exported_job="j"} 1`,
		`A{job="j",exported_job="k"} 1`:     `A{exported_exported_job="j",exported_job="k"} 1`,
		`A{__scheme__="x"} 1`:               `A 1`,
		``:                                  ``,
		" \t":                               ``,
		`#`:                                 ``,
		`# comment`:                         ``,
		`# TYPE`:                            ``,
		`# TYPES are fine`:                  ``,
		`# TYPE A gauge`:                    ``,
		`# TYPE A number`:                   `bad`,
		`# HELP A text`:                     ``,
		"# HELP A \xff":                     `bad`,
		`#HELP A text`:                      ``,
	} {
		t.Run(line, func(t *testing.T) {
			r := NewReader(vendor, target)
			for scrape := range 3 {
				rows, result := read(t, r, "good 1", line)
				wantRows, wantBad := []string{"good 1"}, 0
				switch want {
				case "":
				case "bad":
					wantBad = 1
				default:
					wantRows = append(wantRows, want)
				}
				assert.Equal(t, wantRows, rows, "scrape %d", scrape)
				assert.Equal(t, len(wantRows), result.Samples)
				assert.Equal(t, wantBad, result.Refused[devicemap.Unparsable])
				assert.Equal(t, wantBad > 0, result.Bad != nil)
			}
		})
	}
}

// TestDecimal: a row has a mark of how its value is written, whether the parser reads the line
// or it is remembered.
func TestDecimal(t *testing.T) {
	for line, want := range map[string]bool{
		`A 0`: false, `A 0.000000`: true, `A 1.`: true, `A 1e3`: false, `A 1.5e3`: true, `A{x="0.5"} 1`: false, `A{x="1"} 0.5`: true,
		`A 1 1700000000000`: false, `A 1.0 1700000000000`: true, "A\t{x=\"1\"}\t1.0": true, "A \t 1": false, `A{x="1"}0.5`: true, `A{x="1"}-1.5`: true,
		`A{x="1"} 1 # {trace_id="a"} 0.5`: false, `{"A.b"} 1`: false, `{"A.b"} 1.0`: true, `A NaN`: false,
	} {
		r := NewReader(vendor, target)
		for range 3 {
			rows, _, err := r.Read([]byte(line+"\n"), nil)
			require.NoError(t, err, line)
			require.Len(t, rows, 1, line)
			assert.Equal(t, want, rows[0].Decimal, line)
		}
	}
}

// TestLayout: lines that move, come and go are read as on the first page.
func TestLayout(t *testing.T) {
	lines := []string{"# HELP A text"}
	for i := range 20 {
		lines = append(lines, fmt.Sprintf(`A{x="%d"} %d`, i, i), fmt.Sprintf("B%d %d", i, i), fmt.Sprintf("# TYPE B%d gauge", i))
	}
	r, random := NewReader(vendor, target), rand.New(rand.NewPCG(1, 2))
	for range 200 {
		random.Shuffle(min(len(lines), 5), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		from := random.IntN(10)
		page := append(append([]string{}, lines[from:]...), lines[:random.IntN(from+1)]...)
		got, result := read(t, r, page...)
		want, _ := read(t, NewReader(vendor, target), page...)
		require.Equal(t, want, got)
		require.Empty(t, refused(result))
	}
}

// TestMeta: TYPE and HELP lines count for the page that they are on.
func TestMeta(t *testing.T) {
	r := NewReader(vendor, target)
	for _, tt := range []struct {
		lines []string
		want  devicemap.Type
		help  string
	}{
		{[]string{"A 1"}, devicemap.Gauge, ""},
		{[]string{"A 1", "# TYPE A counter", `# HELP A a\nb`}, devicemap.Counter, "a\nb"},
		{[]string{"# TYPE A histogram", "A 1"}, devicemap.Histogram, "a\nb"},
		{[]string{"# TYPE A summary", "A 1"}, devicemap.Summary, "a\nb"},
		{[]string{"A 1", "# TYPE A counter", "# HELP A c"}, devicemap.Counter, "c"},
		{[]string{"# TYPE A counter", "A 1", "# TYPE A untyped"}, devicemap.Gauge, "c"},
	} {
		read(t, r, tt.lines...)
		assert.Equal(t, tt.want, r.families["A"].Type, tt.lines)
		assert.Equal(t, tt.help, r.families["A"].Help, tt.lines)
	}
}

// TestRepeated: a series counts once, however its labels are written.
func TestRepeated(t *testing.T) {
	r := NewReader(vendor, target)
	for range 3 {
		rows, result := read(t, r, `A{x="1",y="2"} 1`, `A{x="1",y="2"} 2`, `A{y="2",x="1"} 3`, `A{ x="1",y="2"} 4`, `A{x="1"} 5`)
		assert.Equal(t, []string{`A{x="1",y="2"} 1`, `A{x="1"} 5`}, rows)
		assert.Equal(t, map[string]int{"repeated": 3}, refused(result))
		assert.Equal(t, 5, result.Samples)
	}
}

// TestRelabel: metric_relabel_configs see the target's labels, which are no labels
// of the row.
func TestRelabel(t *testing.T) {
	var rules []*relabel.Config
	require.NoError(t, yaml.Unmarshal([]byte(`
- {source_labels: [__name__], regex: DROPPED, action: drop}
- {source_labels: [__name__], regex: OLD, target_label: __name__, replacement: NEW}
- {source_labels: [__name__], regex: NAMELESS, target_label: __name__, replacement: ""}
- {source_labels: [instance, job], target_label: from}
- {regex: secret, action: labeldrop}
`), &rules))
	for _, rule := range rules {
		rule.NameValidationScheme = model.UTF8Validation // as the configuration's loader does
	}
	opts := target
	opts.Relabel = rules
	r := NewReader(vendor, opts)
	for range 3 {
		rows, result := read(t, r, "A 1", "DROPPED 2", `OLD{secret="x"} 3`, "NEW 4", "NAMELESS 5")
		assert.Equal(t, []string{`A{from="node-a:9400;dcgm"} 1`, `NEW{from="node-a:9400;dcgm"} 3`}, rows)
		assert.Equal(t, map[string]int{"repeated": 1, "unparsable": 1}, refused(result))
		assert.Equal(t, 4, result.Samples)
	}
}

func TestLimits(t *testing.T) {
	page := []byte(`A{long_name="long value"} 1` + "\nB 2\n")
	for want, change := range map[string]func(*Options){
		"sample_limit exceeded":             func(o *Options) { o.Samples = 1 },
		"label_limit exceeded":              func(o *Options) { o.Labels = 3 },
		"label_name_length_limit exceeded":  func(o *Options) { o.LabelNameBytes = 8 },
		"label_value_length_limit exceeded": func(o *Options) { o.LabelValueBytes = 9 },
	} {
		opts := Options{Job: "j", Instance: "i"}
		change(&opts)
		r := NewReader(vendor, opts)
		for range 2 {
			rows, _, err := r.Read(page, nil)
			assert.ErrorIs(t, err, ErrLimit)
			assert.ErrorContains(t, err, want)
			assert.Empty(t, rows)
		}
	}
	rows, _, err := NewReader(vendor, Options{Job: "j", Instance: "i", Samples: 2, Labels: 4, LabelNameBytes: 9, LabelValueBytes: 10}).Read(page, nil)
	assert.NoError(t, err)
	assert.Len(t, rows, 2)
}

// TestNoPage: text of which no line is a sample is no page.
func TestNoPage(t *testing.T) {
	for name, text := range map[string]string{
		"HTML":           "\n <!DOCTYPE html>\nA 1\n",
		"text":           "it works!\n",
		"no good line":   "# TYPE A gauge\nA\n",
		"many bad lines": "A 1\n" + strings.Repeat("...\n", maxBad+1),
	} {
		rows, _, err := NewReader(vendor, target).Read([]byte(text), nil)
		assert.ErrorIs(t, err, ErrNoPage, name)
		assert.Empty(t, rows, name)
	}
	for _, text := range []string{"A 1", "A 1\n" + strings.Repeat("...\n", maxBad)} {
		_, _, err := NewReader(vendor, target).Read([]byte(text), nil)
		assert.NoError(t, err)
	}
	for _, text := range []string{"", "\n\n", "\r\n", "# TYPE A gauge\n", "# comment"} {
		_, _, err := NewReader(vendor, target).Read([]byte(text), nil)
		assert.ErrorIs(t, err, ErrEmpty, "%q", text)
	}
}

// TestLongLines: a sample over a limit of a line costs itself, and a help text is cut.
func TestLongLines(t *testing.T) {
	opts := target
	opts.MaxLabels, opts.MaxLabelBytes = 2, 10
	r := NewReader(vendor, opts)
	long := strings.Repeat("x", 11)
	for range 3 {
		rows, result := read(t, r, "# HELP A "+long, `A{a="1",b="2"} 1`, `A{a="1",b="2",c="3"} 1`, `A{a="`+long+`"} 1`, `A{`+long+`="1"} 1`, long+" 1", `A{job="j"} 1`)
		assert.Equal(t, []string{`A{a="1",b="2"} 1`}, rows[:1])
		assert.Equal(t, map[string]int{"limit": 5}, refused(result), "exported_job is too long as well")
		assert.Equal(t, 6, result.Samples)
		assert.Equal(t, 5, result.TooLong)
		assert.ErrorContains(t, result.Long, "A has 3 labels: over the limit of a line, max_labels is 2")
		assert.Equal(t, long[:10], r.families["A"].Help)
		assert.Len(t, r.series, 1, "nothing of them is remembered")
	}
	_, _, err := r.Read([]byte("A 1\n"+strings.Repeat(long+" 1\n", maxBad+1)), nil)
	assert.ErrorIs(t, err, ErrLimit)
}

// TestForget: what is remembered follows the page, not its history.
func TestForget(t *testing.T) {
	r := NewReader(vendor, target)
	for page := range 20 {
		var lines []string
		for i := range 2000 {
			lines = append(lines, fmt.Sprintf("# TYPE A%d_%d counter\nA%d_%d{x=\"%d\"} %d", page, i, page, i, i%10, i), fmt.Sprintf(`B { x="%d_%d" } 1`, page, i))
		}
		rows, _ := read(t, r, lines...)
		require.Len(t, rows, 4000)
	}
	assert.LessOrEqual(t, len(r.lines)+len(r.series), 2*8000+1000)
	for _, n := range []int{len(r.families), len(r.labels), len(r.texts)} {
		assert.LessOrEqual(t, n, 2*8000+1000)
	}
	rows, _ := read(t, r, `A19_7{x="7"} 1`, `B{x="19_7"} 1`)
	assert.Len(t, rows, 2)
	assert.Len(t, r.series, 2)
	assert.Len(t, r.families, 2)
	assert.Equal(t, devicemap.Gauge, r.families["B"].Type)
	rows, _ = read(t, r, `A19_7{x="7"} 1`, `B{x="19_7"} 1`)
	assert.Equal(t, []string{`A19_7{x="7"} 1`, `B{x="19_7"} 1`}, rows)
}

// TestTooManyLines: the rest of a page that is too long is refused, by number,
// whatever the pages before it had.
func TestTooManyLines(t *testing.T) {
	var page strings.Builder
	for i := range maxLines {
		fmt.Fprintf(&page, "A%d 1\n", i)
	}
	r := NewReader(vendor, target)
	for n := range 3 {
		text := strings.Repeat("# TYPE A0 gauge\n", n) // a line that is there often is remembered once
		for i := range 10 * n {
			text += fmt.Sprintf("B%d 1\n", i)
		}
		text += page.String() + "# TYPE A0 gauge\n# comment\n\n"
		rows, result, err := r.Read([]byte(text), nil)
		require.NoError(t, err)
		more := 10*n + min(n, 1)
		assert.Len(t, rows, maxLines-min(n, 1))
		want := map[string]int{"limit": more}
		if n == 0 {
			want = map[string]int{}
		}
		assert.Equal(t, want, refused(result))
		assert.Equal(t, n > 0, result.Over == devicemap.OverLines)
		assert.Equal(t, maxLines+10*n, result.Samples)
		assert.Len(t, r.layout, maxLines)
	}
}
