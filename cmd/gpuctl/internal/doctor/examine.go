// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// Options say what to look at. The zero values of the strings and lists find it
// out by themselves.
type Options struct {
	// Configs are the collector's configurations, as its own --config takes them.
	Configs []string
	// Running is how many collectors run here. Of more than one none is meant
	// without Configs.
	Running int
	// Exporters are URLs that are looked at in the place of the configured ones.
	Exporters []string
	// Role is agent or gateway: whose rights are checked where there is no
	// configuration.
	Role string
	// As is the user whose rights are checked, instead of one's own.
	As string
	// Token is for the console.
	Token string
	// Only are the names of the checks to make.
	Only []string
	// Timeout of each check.
	Timeout time.Duration
	// Watch is the time between two readings of what must move. 0: one reading.
	Watch time.Duration
	// Version of this program.
	Version string
	// Progress, if set, is called as the work goes on: of so much that is known to be
	// done, so much is. Calls do not overlap.
	Progress func(done, all int)

	now    func() time.Time
	folder string // of the usual configurations
}

const (
	roleAgent      = "agent"
	roleGateway    = "gateway"
	roleStandalone = "standalone"
)

// installation is what there is to look at.
type installation struct {
	Options
	*configuration
	role string
	// remote: there is neither a configuration nor a collector here, only a
	// cluster to ask about rights.
	remote   bool
	kube     *kubeAPI
	progress *progress
}

// examine finds out what there is to look at. The error is of the options.
func examine(ctx context.Context, o Options) (*installation, []Result, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if o.folder == "" {
		o.folder = usualConfigs
	}
	if o.Role != "" && o.Role != roleAgent && o.Role != roleGateway {
		return nil, nil, errors.New("--role: use agent or gateway")
	}
	for _, e := range o.Exporters {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, nil, errors.New("--exporter: one is no address as in http://localhost:9400/metrics")
		}
	}
	in := &installation{Options: o, progress: &progress{report: o.Progress}}
	result := in.configure(ctx)
	in.role = in.found()
	in.kube = newKubeAPI(in)
	switch {
	case in.configuration == nil:
		in.configuration = newConfiguration(confmap.New())
	case result.Status != OK:
	default:
		result.Seen += ": " + in.role
	}
	return in, []Result{result}, nil
}

// configure reads the configuration, and says what was read.
func (in *installation) configure(ctx context.Context) Result {
	uris := in.Configs
	if len(uris) == 0 && in.Role != "" {
		in.remote = true
		return Result{"configuration", "", Skipped, "none: only what the role " + in.Role + " needs of the cluster is looked at", ""}
	}
	if len(uris) == 0 {
		var err error
		if uris, err = usualFiles(in.folder); err != nil {
			return Result{"configuration", "", Fail, err.Error(), "name the files with --config"}
		}
	}
	if bases := basesOf(uris); len(in.Configs) == 0 && bases > 1 {
		in.configuration = assumed()
		return Result{"configuration", "", Warn, in.folder + " has several configurations: config/standalone.yaml on its usual ports is assumed", "name the collector's own with --config, in its order"}
	}
	if len(uris) == 0 && in.Running > 1 {
		in.configuration = assumed()
		return Result{"configuration", "", Warn, fmt.Sprintf("%d collectors run here: config/standalone.yaml on its usual ports is assumed", in.Running), "name the files of the one that is meant with --config, in its order, in its working directory and with its environment"}
	}
	if len(uris) == 0 {
		in.configuration = assumed()
		return Result{"configuration", "", Skipped, "none in " + in.folder + ": config/standalone.yaml on its usual ports is assumed", ""}
	}
	names := make([]string, len(uris))
	for i, uri := range uris {
		names[i] = uri
		if scheme, _, found := strings.Cut(uri, ":"); found && scheme == "yaml" {
			names[i] = "yaml:…" // what stands there may be a secret
		}
	}
	var err error
	if in.configuration, err = load(ctx, uris); err != nil {
		r := Result{"configuration", "", Fail, unquoted(err), "correct it; otelcol-gpu validate with the same --config says whether the collector takes it"}
		for i, uri := range uris { // the error does not say of which
			if _, err := load(ctx, []string{uri}); err != nil {
				r.Subject, r.Seen = names[i], unquoted(err)
				break
			}
		}
		return r
	}
	result := Result{"configuration", "", OK, strings.Join(names, ", "), ""}
	if len(in.used) == 0 {
		result.Status, result.Remedy = Fail, "the service has no pipelines: name all files of the collector with --config, in its order"
	}
	return result
}

// found is which part of an installation the configuration describes.
func (in *installation) found() string {
	if in.configuration == nil || in.remote {
		return in.Role
	}
	summary := len(in.of("processors", "gpu_summary")) > 0
	devices := len(in.of("receivers", "dcgm", "gpu_allocation")) > 0
	switch {
	case summary && devices:
		return roleStandalone
	case summary:
		return roleGateway
	case devices:
		return roleAgent
	default:
		return "another collector"
	}
}

// checks are all checks of what there is.
func (in *installation) checks() []check {
	all := []check{{"kubernetes", in.checkKubernetes}, {"rbac", in.checkRBAC}, {"versions", in.checkVersions}}
	if in.remote {
		return all
	}
	return []check{
		{"exporter", in.checkExporters}, {"kubelet", in.checkKubelet}, all[0], all[1],
		{"collector", in.checkHealth}, {"telemetry", in.checkTelemetry}, {"otlp", in.checkListeners}, {"gateway", in.checkGateway},
		{"console", in.checkConsole}, {"state", in.checkState}, {"webhook", in.checkWebhooks}, all[2],
	}
}

// authType is how the collector comes to the Kubernetes API: none where it does
// not.
func (in *installation) authType() (k8sclient.Config, bool) {
	own := k8sclient.Config{AuthType: k8sclient.ServiceAccount}
	_, inCluster := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	if !inCluster {
		own.AuthType = k8sclient.KubeConfig
	}
	if in.remote {
		return own, true
	}
	if in.configuration == nil {
		return own, false
	}
	components := append(in.allocations(), in.of("processors", "k8s_attributes", "k8sattributes")...)
	for _, c := range append(components, in.of("processors", "gpu_summary")...) {
		var cfg struct {
			AuthType     k8sclient.AuthType `mapstructure:"auth_type"`
			Context      string             `mapstructure:"context"`
			ExpectedPods string             `mapstructure:"expected_pods"`
			Optional     bool               `mapstructure:"optional"`
		}
		// What is optional does without the API where it is in no cluster.
		if c.read(&cfg) != nil || cfg.AuthType == k8sclient.None || cfg.Optional && !inCluster || strings.HasPrefix(c.id, "gpu_summary") && cfg.ExpectedPods != "kubernetes" {
			continue
		}
		if cfg.AuthType == "" {
			cfg.AuthType = k8sclient.ServiceAccount
		}
		// Asking for somebody else needs an account that may.
		if in.As != "" {
			return own, true
		}
		return k8sclient.Config{AuthType: cfg.AuthType, Context: cfg.Context}, true
	}
	for _, d := range in.dcgm() {
		if d.Kubernetes != nil {
			return own, true
		}
	}
	return own, false
}

// quoted are the values that errors of YAML and of the variables' expansion show.
var quoted = regexp.MustCompile("`[^`]*`|(?i)(uri \"[^\"]*\")")

// unquoted is an error without the values in it, which may be secrets.
func unquoted(err error) string { return quoted.ReplaceAllString(err.Error(), "…") }
