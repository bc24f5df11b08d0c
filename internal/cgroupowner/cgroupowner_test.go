// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cgroupowner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	id   = strings.Repeat("0123456789abcdef", 4)
	id2  = strings.Repeat("fedcba9876543210", 4)
	pod  = "0a11ce00-0001-4000-8000-000000000001"
	pod_ = strings.ReplaceAll(pod, "-", "_")
)

func TestOfPath(t *testing.T) {
	inPod := Owner{ContainerID: id, PodUID: pod}
	for path, want := range map[string]Owner{
		// Kubernetes: cgroupfs and systemd; guaranteed pods have no class in the path.
		"/kubepods/burstable/pod" + pod + "/" + id: inPod,
		"/kubepods/pod" + pod + "/" + id:           inPod,
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + pod_ + ".slice/cri-containerd-" + id + ".scope":             inPod,
		"/kubepods.slice/kubepods-pod" + pod_ + ".slice/crio-" + id + ".scope/container":                                                  inPod,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + pod_ + ".slice/docker-" + id + ".scope":                       inPod,
		"/system.slice/containerd.service/kubepods-burstable-pod" + pod_ + ".slice:cri-containerd:" + id:                                  inPod,
		"/../../kubepods-burstable-pod" + pod_ + ".slice/cri-containerd-" + id + ".scope":                                                 inPod,
		"/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + id:                                                                   {ContainerID: id, PodUID: "0123456789abcdef0123456789abcdef"},
		"/kubepods.slice/kubepods-pod" + pod_ + ".slice":                                                                                  {PodUID: pod},
		"/kubepods.slice/kubepods-pod" + pod_ + ".slice/crio-conmon-" + id + ".scope":                                                     {PodUID: pod},
		"/docker/" + id2 + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + pod_ + ".slice/cri-containerd-" + id + ".scope": inPod, // kind
		"/kubepods/pod" + pod + "/" + id + "/docker/" + id2:                                                                               inPod, // a container that the pod started
		"/kubepods/pod" + pod + "/" + id + "/system.slice/slurmstepd.scope/job_7/step_0/user/task_0":                                      {ContainerID: id, PodUID: pod, SlurmJob: "7"},
		"/kubepods.slice/kubepods-pod" + pod_[:35] + ".slice/cri-containerd-" + id + ".scope":                                             {ContainerID: id},
		"/elsewhere.slice/elsewhere-pod" + pod_ + ".slice/a.scope":                                                                        {},
		// Docker and podman.
		"/docker/" + id:                          {ContainerID: id},
		"/system.slice/docker-" + id + ".scope":  {ContainerID: id},
		"/docker/" + id + "/docker/" + id2:       {ContainerID: id2},
		"/machine.slice/libpod-" + id + ".scope": {ContainerID: id},
		"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope/container": {ContainerID: id},
		"/machine.slice/libpod-conmon-" + id + ".scope":                                              {},
		"/docker/" + id[:63]:       {},
		"/docker/" + id[:63] + "g": {},
		// Slurm.
		"/slurm/uid_1000/job_4711/step_batch/task_0":                 {SlurmJob: "4711"},
		"/slurm_node1/uid_1000/job_4711/step_0":                      {SlurmJob: "4711"},
		"/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0": {SlurmJob: "4711"},
		"/system.slice/node1_slurmstepd.scope/job_4711/step_0/slurm": {SlurmJob: "4711"},
		"/system.slice/slurmstepd.scope/sEKN0A1B2C3D4E/step_0/user":  {}, // its number is not known
		"/slurm/uid_1000/job_12345678901/step_0":                     {},
		"/slurm/uid_1000/job_/step_0":                                {},
		"/elsewhere/job_4711":                                        {},
		// systemd.
		"/system.slice/vllm.service":                       {Unit: "vllm.service"},
		"/system.slice/system-vllm.slice/vllm@0.service/a": {Unit: "vllm@0.service"},
		"/system.slice/vllm\x01.service":                   {},
		"/user.slice/user-1000.slice/session-3.scope":      {}, // of a user
		"/init.scope": {},
		"/":           {},
		"":            {},
	} {
		assert.Equal(t, want, OfPath(path), path)
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want Owner
	}{
		"v2":     {"0::/system.slice/docker-" + id + ".scope\n", Owner{ContainerID: id}},
		"v1":     {"12:devices:/slurm/uid_1/job_5/step_0\n11:memory:/slurm/uid_1/job_5/step_0/task_1\n1:name=systemd:/system.slice/slurmd.service\n0::/system.slice/slurmd.service\n", Owner{SlurmJob: "5"}},
		"hybrid": {"3:cpu,cpuacct:/\n1:name=systemd:/system.slice/vllm.service\n0::/system.slice/vllm.service", Owner{Unit: "vllm.service"}},
		"colons": {"0::/system.slice/containerd.service/kubepods-pod" + pod_ + ".slice:cri-containerd:" + id + "\n", Owner{ContainerID: id, PodUID: pod}},
		"none":   {"0::/\n", Owner{}},
		"broken": {"0:\nnothing\n\n", Owner{}},
		"empty":  {"", Owner{}},
	} {
		assert.Equal(t, tc.want, Parse(tc.file), name)
	}
}

// FuzzParse: whatever a path is, an owner has the form that its attribute promises.
func FuzzParse(f *testing.F) {
	f.Add("0::/kubepods/burstable/pod" + pod + "/" + id + "\n")
	f.Add("0::/kubepods.slice/kubepods-burstable-pod" + pod_ + ".slice:cri-containerd:" + id)
	f.Add("12:devices:/slurm/uid_1000/job_4711/step_0\n1:name=systemd:/system.slice/slurmd.service\n")
	f.Add("0::/system.slice/docker-" + id + ".scope")
	f.Fuzz(func(t *testing.T, file string) {
		o := Parse(file)
		assert.Regexp(t, `^([0-9a-f]{64})?$`, o.ContainerID)
		assert.Regexp(t, `^([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$`, o.PodUID)
		assert.Regexp(t, `^[0-9]{0,10}$`, o.SlurmJob)
		assert.Regexp(t, `^([!-~]{1,255})?$`, o.Unit)
		assert.True(t, o.Unit == "" || o == Owner{Unit: o.Unit})
	})
}
