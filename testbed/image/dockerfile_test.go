// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// anyImage answers for every base image with an empty one: the linter needs some.
type anyImage struct{}

func (anyImage) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	platform := ocispecs.Platform{OS: "linux", Architecture: "amd64"}
	if opt.ImageOpt != nil && opt.ImageOpt.Platform != nil {
		platform = *opt.ImageOpt.Platform
	}
	config, err := json.Marshal(ocispecs.Image{Platform: platform})
	return ref, digest.FromBytes(config), config, err
}

// lint is `docker build --check`: BuildKit's rules, and what would be no build.
func lint(t *testing.T, dockerfile string, architecture string) []string {
	t.Helper()
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", []byte(dockerfile))
	source.Definition = &llb.Definition{}
	options := dockerfile2llb.ConvertOpt{
		SourceMap:      source,
		MetaResolver:   anyImage{},
		TargetPlatform: &ocispecs.Platform{OS: "linux", Architecture: architecture},
	}
	options.BuildPlatforms = []ocispecs.Platform{{OS: "linux", Architecture: "amd64"}}
	results, err := dockerfile2llb.DockerfileLint(t.Context(), []byte(dockerfile), options)
	require.NoError(t, err)
	var found []string
	if results.Error != nil {
		found = append(found, results.Error.Message)
	}
	for _, w := range results.Warnings {
		found = append(found, w.RuleName+": "+w.Detail)
	}
	return found
}

func TestDockerfileIsLinted(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		assert.Empty(t, lint(t, read(t, "Dockerfile"), architecture), architecture)
	}
	// The linter is at work: this has four faults, and the second is no build.
	found := strings.Join(lint(t, "FROM scratch\nENV TOKEN secret\nWORKDIR relative\nCMD run it\n", "amd64"), "\n")
	for _, rule := range []string{"LegacyKeyValueFormat", "SecretsUsedInArgOrEnv", "WorkdirRelativePath", "JSONArgsRecommended"} {
		assert.Contains(t, found, rule)
	}
	assert.NotEmpty(t, lint(t, "FROM scratch\nRUNN true\n", "amd64"))
}

// stages are the Dockerfile's.
func stages(t *testing.T) (all []instructions.Stage, global []instructions.ArgCommand) {
	t.Helper()
	parsed, err := parser.Parse(strings.NewReader(read(t, "Dockerfile")))
	require.NoError(t, err)
	all, global, err = instructions.Parse(parsed.AST, nil)
	require.NoError(t, err)
	return all, global
}

func TestVersionsInTheDockerfile(t *testing.T) {
	_, global := stages(t)
	arguments := map[string]string{}
	for _, command := range global {
		for _, a := range command.Args {
			require.NotNil(t, a.Value, a.Key)
			arguments[a.Key] = *a.Value
		}
	}
	version := regexp.MustCompile(`(?m)^  version: (\S+)$`).FindStringSubmatch(read(t, "builder-config.yaml"))
	require.Len(t, version, 2)
	assert.Equal(t, version[1], arguments["VERSION"])

	wanted := regexp.MustCompile(`(?m)^go (\d+)\.(\d+)`).FindStringSubmatch(read(t, "go.mod"))
	given := regexp.MustCompile(`^(\d+)\.(\d+)$`).FindStringSubmatch(arguments["GO_VERSION"])
	require.Len(t, wanted, 3)
	require.Len(t, given, 3, "GO_VERSION is a minor version, so that its patches come by themselves")
	assert.Equal(t, wanted[1], given[1])
	assert.GreaterOrEqual(t, given[2], wanted[2], "go.mod needs a newer Go than the image is built with")
}

var goBuild = regexp.MustCompile(`go\)? build [^&\n)]*(?:\$\([^)]*\)[^&\n)]*)*`)

// buildTags are the distribution's.
func buildTags(t *testing.T) string {
	t.Helper()
	tags := regexp.MustCompile(`(?m)^  build_tags: "(\S+)"$`).FindStringSubmatch(read(t, "builder-config.yaml"))
	require.Len(t, tags, 2)
	return tags[1]
}

// normal is a go build command without what differs on purpose: where the result
// goes, and how the version and the tags are fetched.
func normal(command, tags string) string {
	command = strings.NewReplacer("$(TAGS)", tags, `'$$(sed -n 's/^  version: //p' builder-config.yaml)`, `$VERSION'`, `"`, `'`).Replace(command)
	command = regexp.MustCompile(` -o \S*/(\S+)`).ReplaceAllString(command, " -o $1")
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(command, "go)"), "go"))
}

// The image's binaries are those of `make build`.
func TestBuildCommandsAreTheMakefiles(t *testing.T) {
	makefile, tags := read(t, "Makefile"), buildTags(t)
	_, target, found := strings.Cut(makefile, "\nbuild: ")
	require.True(t, found)
	target, _, _ = strings.Cut(target, "\n\n")
	of := map[string]string{}
	for _, line := range strings.Split(target, "\n") {
		if _, command, ok := strings.Cut(line, "$(GO_BUILD)"); ok {
			command = normal(" build"+command, tags)
			of[command[strings.LastIndex(command, " ")+1:]] = command
		}
	}

	all, _ := stages(t)
	var script string
	for _, command := range all[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			script += strings.Join(run.CmdLine, " ") + "\n"
		}
	}
	commands := goBuild.FindAllString(script, -1)
	require.Len(t, commands, 3, script)
	for _, command := range commands {
		command = normal(command, tags)
		assert.Equal(t, of[command[strings.LastIndex(command, " ")+1:]], command)
	}
	flags := strings.ReplaceAll(read(t, "scripts", "env"), `"`, "")
	for _, setting := range []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"} {
		assert.Contains(t, flags, setting)
		assert.Contains(t, script, setting)
	}
}

// The image has the license texts that `make third-party` collects: the same
// command, of the binaries that are in it.
func TestLicensesAreInTheImage(t *testing.T) {
	command := regexp.MustCompile(`run \./internal/sbom/thirdparty -page \S+ -out \S+( \S+){3}`)
	clean := strings.NewReplacer("$(BIN)", "bin", "/out/bin", "bin", "/out/nvml", "bin", "/out/", "bin/").Replace
	made := command.FindString(read(t, "Makefile"))
	require.NotEmpty(t, made)
	dockerfile := read(t, "Dockerfile")
	assert.Equal(t, clean(made), clean(command.FindString(dockerfile)))
	assert.Contains(t, dockerfile, "COPY --from=build /out/third-party/ /licenses/third-party/")
	assert.FileExists(t, filepath.Join(root, "extension/gpuconsoleextension/web/dist/third-party-licenses.md"))
}

// ignored is .dockerignore, as a builder applies it.
func ignored(t *testing.T) *patternmatcher.PatternMatcher {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(read(t, ".dockerignore")))
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	return matcher
}

// What is copied from the working tree is there, and is sent to the builder.
func TestCopiedFilesExist(t *testing.T) {
	matcher := ignored(t)
	all, _ := stages(t)
	copies := 0
	for _, stage := range all {
		for _, command := range stage.Commands {
			c, ok := command.(*instructions.CopyCommand)
			if !ok || c.From != "" {
				continue
			}
			for _, source := range c.SourcePaths {
				copies++
				found, err := filepath.Glob(filepath.Join(root, source))
				require.NoError(t, err)
				require.NotEmpty(t, found, "%s is not there", source)
				for _, path := range found {
					own, err := filepath.Rel(root, path)
					require.NoError(t, err)
					if own != "." {
						out, err := matcher.MatchesOrParentMatches(own)
						require.NoError(t, err)
						assert.False(t, out, "%s is copied, and .dockerignore leaves it out", own)
					}
				}
			}
		}
	}
	assert.GreaterOrEqual(t, copies, 3)
}

// Every file that the commands are built from is sent to the builder, on both
// architectures; tests and what lies about is not.
func TestDockerignoreKeepsWhatIsBuilt(t *testing.T) {
	matcher := ignored(t)
	tags := buildTags(t)
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	const format = `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`
	kept := 0
	for _, architecture := range []string{"amd64", "arm64"} {
		for _, main := range [][2]string{{"cmd/otelcol-gpu", "."}, {".", "./cmd/gpuctl"}, {".", "./cmd/otelcol-gpu-nvml"}} {
			list := exec.Command("go", "list", "-deps", "-tags", tags, "-f", format, main[1])
			list.Dir = filepath.Join(root, main[0])
			list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
			var stderr strings.Builder
			list.Stderr = &stderr
			out, err := list.Output()
			require.NoError(t, err, stderr.String())
			for path := range strings.Lines(string(out)) {
				own, err := filepath.Rel(absolute, strings.TrimSpace(path))
				if err != nil || strings.HasPrefix(own, "..") {
					continue // a module from elsewhere
				}
				kept++
				out, err := matcher.MatchesOrParentMatches(own)
				require.NoError(t, err)
				assert.False(t, out, "%s is part of the build, and .dockerignore leaves it out", own)
			}
		}
	}
	assert.Greater(t, kept, 500)
	for _, path := range []string{"go.mod", "cmd/otelcol-gpu/go.mod", "LICENSE"} {
		out, err := matcher.MatchesOrParentMatches(path)
		require.NoError(t, err)
		assert.False(t, out, path)
	}
	for _, path := range []string{".git", "bin", "testbed", ".tools", "otelcol-gpu-state", "extension/gpuconsoleextension/web/node_modules", "internal/names/names_test.go", "processor/gpusummaryprocessor/testdata/x", "tls.key"} {
		out, err := matcher.MatchesOrParentMatches(path)
		require.NoError(t, err)
		assert.True(t, out, path)
	}
}

// The result is not root, has labels that describe it, has both commands and a default that
// is among its files. The flavour nvml has the helper, and glibc.
func TestImageOfTheLastStage(t *testing.T) {
	all, _ := stages(t)
	last, flavour := all[len(all)-1], all[len(all)-2]
	assert.Regexp(t, `^gcr\.io/distroless/static-.+:nonroot$`, last.BaseName)
	testStage(t, last, []string{"/out/bin/"}, []string{"standalone.yaml"})
	environment := map[string]string{}
	for _, command := range last.Commands {
		_, env := command.(*instructions.EnvCommand)
		assert.False(t, env && strings.Contains(fmt.Sprint(command), "NVIDIA"), "no driver without the helper")
	}
	assert.Equal(t, "nvml", flavour.Name)
	assert.Regexp(t, `^gcr\.io/distroless/base-.+:nonroot$`, flavour.BaseName)
	testStage(t, flavour, []string{"/out/bin/", "/out/nvml/"}, []string{"standalone.yaml", "nvml-standalone.yaml"})
	for _, command := range flavour.Commands {
		if c, ok := command.(*instructions.EnvCommand); ok {
			for _, pair := range c.Env {
				environment[pair.Key] = pair.Value
			}
		}
	}
	// NVIDIA_MIG_MONITOR_DEVICES is not among them: with it the container toolkit starts no
	// container without CAP_SYS_ADMIN.
	assert.Equal(t, map[string]string{"STATE_DIRECTORY": "/var/lib/otelcol-gpu", "NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "utility"}, environment)
}

func testStage(t *testing.T, last instructions.Stage, binaries, configurations []string) {
	t.Helper()
	labels, folders := map[string]string{}, map[string][]string{}
	var user, entry, arguments string
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.LabelCommand:
			for _, l := range c.Labels {
				labels[strings.TrimPrefix(l.Key, "org.opencontainers.image.")] = strings.Trim(l.Value, `"`)
			}
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			entry = strings.Join(c.CmdLine, " ")
		case *instructions.CmdCommand:
			arguments = strings.Join(c.CmdLine, " ")
		case *instructions.CopyCommand:
			folders[c.DestPath] = c.SourcePaths
		case *instructions.RunCommand:
			t.Errorf("nothing can run there: %s", c)
		}
	}
	assert.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user, "a number, so that Kubernetes sees that it is not root")
	assert.Equal(t, "/usr/local/bin/otelcol-gpu", entry)
	assert.Equal(t, binaries, folders["/usr/local/bin/"])
	assert.Equal(t, []string{"config/*.yaml"}, folders["/etc/otelcol-gpu/"])
	var wanted []string
	for _, name := range configurations {
		wanted = append(wanted, "--config /etc/otelcol-gpu/"+name)
		assert.FileExists(t, filepath.Join(root, "config", name))
	}
	assert.Equal(t, strings.Join(wanted, " "), arguments)
	assert.Equal(t, "$VERSION", labels["version"])
	assert.Equal(t, "Apache-2.0", labels["licenses"])
	assert.Equal(t, last.BaseName, labels["base.name"])
	for _, name := range []string{"title", "description", "revision", "source", "documentation", "vendor"} {
		assert.NotEmpty(t, labels[name], name)
	}
}

// gpuctl for arm64, really compiled; otelcol-gpu takes minutes: `make image-check`.
func TestGpuctlForARM64(t *testing.T) {
	out := filepath.Join(t.TempDir(), "gpuctl")
	build := exec.Command("go", "build", "-trimpath", "-o", out, "./cmd/gpuctl")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "GOFLAGS=-buildvcs=false")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	assertARM64(t, out)
}
