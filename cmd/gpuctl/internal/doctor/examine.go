// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/probe"
)

// configure reads the configuration. The result has what was read; without it the
// configuration is empty.
func configure(ctx context.Context, o Options) (*config.Configuration, probe.Result) {
	none := config.New(confmap.New())
	uris := o.Configs
	if o.onlyCluster() {
		return none, probe.New("", probe.Skipped, "none: only what the role "+o.Role+" needs of the cluster is looked at", "")
	}
	if len(uris) == 0 {
		var err error
		if uris, err = config.UsualFiles(o.folder); err != nil {
			return none, probe.New("", probe.Fail, err.Error(), "name the files with --config")
		}
	}
	if bases := config.BasesOf(uris); len(o.Configs) == 0 && bases > 1 {
		return config.Assumed(), probe.New("", probe.Warn, o.folder+" has several configurations: config/standalone.yaml on its usual ports is assumed", "name the collector's own with --config, in its order")
	}
	if len(uris) == 0 && o.Running > 1 {
		return config.Assumed(), probe.New("", probe.Warn, fmt.Sprintf("%d collectors run here: config/standalone.yaml on its usual ports is assumed", o.Running), "name the files of the one that is meant with --config, in its order, in its working directory and with its environment")
	}
	if len(uris) == 0 {
		return config.Assumed(), probe.New("", probe.Skipped, "none in "+o.folder+": config/standalone.yaml on its usual ports is assumed", "")
	}
	names := make([]string, len(uris))
	for i, uri := range uris {
		names[i] = uri
		if scheme, _, found := strings.Cut(uri, ":"); found && scheme == "yaml" {
			names[i] = "yaml:…" // its text may be a secret
		}
	}
	conf, err := config.Load(ctx, uris)
	if err != nil {
		r := probe.New("", probe.Fail, unquoted(err), "correct it; otelcol-gpu validate with the same --config shows whether the collector accepts it")
		for i, uri := range uris { // the error does not name the file
			if _, err := config.Load(ctx, []string{uri}); err != nil {
				r.Subject, r.Seen = names[i], unquoted(err)
				break
			}
		}
		return none, r
	}
	result := probe.New("", probe.OK, strings.Join(names, ", "), "")
	if conf.Empty() {
		result.Status, result.Remedy = probe.Fail, "the service has no pipelines: name all files of the collector with --config, in its order"
		return conf, result
	}
	result.Seen += ": " + conf.Role()
	return conf, result
}

// quoted are the values that errors of YAML and of the variables' expansion show.
var quoted = regexp.MustCompile("`[^`]*`|(?i)(uri \"[^\"]*\")")

// unquoted is an error without the values in it, which may be secrets.
func unquoted(err error) string { return quoted.ReplaceAllString(err.Error(), "…") }
