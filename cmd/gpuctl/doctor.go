// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor"
	"github.com/otelcol-gpu/otelcol-gpu/internal/safetext"
)

const maxDoctorWatch = 10 * time.Minute

var doctorLong = `It looks at everything that the collector's configuration names: its exporters and
their fields, the kubelet's socket, the Kubernetes API and the rights in it, the
collector itself, the gateway, the console, the folders, the webhooks. It sends no
telemetry and no event, and changes nothing.

The configuration is read with --config, as the collector reads it, variables
included. Without it that of the collector that runs here is taken, with its working
directory and environment, else what is in /etc/otelcol-gpu, else one machine with
config/standalone.yaml on its usual ports is assumed. With --role and
no configuration only the cluster is asked, whether an account may do what the
agent or the gateway needs:

  gpuctl doctor --role agent --as system:serviceaccount:otelcol-gpu:otelcol-gpu-agent

CHECK is one of ` + strings.Join(doctor.Names[:7], ", ") + `,
` + strings.Join(doctor.Names[7:], ", ") + `; without one, all are made.
The token of a console is read from --token-file, else from ` + tokenVariable + `.
Exit code: 0 nothing fails, 1 something does, 2 wrong arguments.`

func newDoctor() *command {
	var o doctor.Options
	var output, tokenFile string
	return &command{
		name:  "doctor",
		args:  "[CHECK…] [--config FILE…] [--exporter URL…] [--watch DURATION] [-o json]",
		short: "finds what is wrong with an installation, and the remedy",
		long:  doctorLong,
		flags: func(f *pflag.FlagSet) {
			f.StringArrayVar(&o.Configs, "config", nil, "the collector's configuration; several in the collector's order")
			f.StringArrayVar(&o.Exporters, "exporter", nil, "look at this exporter, not at the configured ones")
			f.StringVar(&o.Role, "role", "", "agent or gateway: which rights to check where there is no configuration")
			f.StringVar(&o.As, "as", "", "the user to check the rights of; needs the right to impersonate")
			f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long each check may take")
			f.DurationVar(&o.Watch, "watch", 0, "read exporters and counters again after this time: what stands still, what rises")
			f.StringVar(&tokenFile, "token-file", "", "file with the console's token; without it "+tokenVariable+" is read")
			f.StringVarP(&output, "output", "o", "table", "table or json")
		},
		run: func(ctx context.Context, s streams, args []string) error {
			switch {
			case output != "table" && output != "json":
				return fmt.Errorf("-o %s is not table or json", safetext.Strip(output, 20))
			case o.Timeout <= 0:
				return errors.New("--timeout is not longer than 0")
			case o.Watch < 0 || o.Watch > maxDoctorWatch:
				return fmt.Errorf("--watch is not within 0 and %v", maxDoctorWatch)
			}
			o.Only, o.Version = args, versionText()
			if tokenFile != "" || os.Getenv(tokenVariable) != "" {
				token, err := (&controlClient{tokenFile: tokenFile}).token()
				if err != nil {
					return err
				}
				o.Token = token
			}
			if len(o.Configs) == 0 && o.Role == "" && !(len(o.Exporters) > 0 && slices.Equal(args, []string{"exporter"})) {
				running := doctor.FindCollectors()
				if len(running) == 1 {
					running[0].Adopt()
					o.Configs = running[0].Configs
				}
				o.Running = len(running)
			}
			if isTerminal(s.err) {
				o.Progress = func(done, all int) { fmt.Fprintf(s.err, "\r\x1b[Kchecked: %d of %d", done, all) }
			}
			results, err := doctor.Run(ctx, o)
			if o.Progress != nil {
				fmt.Fprint(s.err, "\r\x1b[K") // what was seen takes its place
			}
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeIndented(s.out, struct {
					Status  doctor.Status   `json:"status"`
					Results []doctor.Result `json:"results"`
				}{doctor.Worst(results), results})
			} else {
				err = doctorTable(s.out, results)
			}
			if err == nil && doctor.Worst(results) == doctor.Fail {
				err = errFailed
			}
			return err
		},
	}
}

// doctorTable writes all that was seen, and below it what to do.
func doctorTable(w io.Writer, results []doctor.Result) error {
	t := newTable(w, "STATUS", "CHECK", "SUBJECT", "SEEN")
	counts := map[doctor.Status]int{}
	for _, r := range results {
		counts[r.Status]++
		t.row(string(r.Status), r.Check, name(r.Subject), r.Seen)
	}
	if err := t.end(); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range results {
		if r.Remedy == "" || r.Status == doctor.OK || r.Status == doctor.Skipped {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s", r.Status, r.Check)
		if r.Subject != "" {
			b.WriteString(", " + r.Subject)
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(r.Remedy, "\n", "\n    "))
	}
	fmt.Fprintf(&b, "\n%d ok, %d warn, %d fail, %d skipped\n", counts[doctor.OK], counts[doctor.Warn], counts[doctor.Fail], counts[doctor.Skipped])
	_, err := io.WriteString(w, b.String())
	return err
}
