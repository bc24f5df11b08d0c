// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package serviceidentity

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type labels = map[string]string

// created is minute 29,753,760 of Unix time.
var created = time.Date(2026, 7, 28, 8, 0, 0, 0, time.UTC)

func TestFromPod(t *testing.T) {
	const (
		instance = "app.kubernetes.io/instance"
		name     = "app.kubernetes.io/name"
		hash     = "pod-template-hash"
	)
	replicaSet := []Owner{{"ReplicaSet", "chat-7d9c6b5f4"}}
	every := labels{
		"leaderworkerset.sigs.k8s.io/name": "lws", "ray.io/cluster": "ray", "jobset.sigs.k8s.io/jobset-name": "jobset",
		"training.kubeflow.org/job-name": "kubeflow", "volcano.sh/job-name": "volcano", instance: "i", name: "n",
	}
	without := func(keys ...string) labels {
		m := labels{}
		for k, v := range every {
			m[k] = v
		}
		for _, k := range keys {
			delete(m, k)
		}
		return m
	}
	for _, tt := range []struct {
		rule string
		pod  Pod
		want string
	}{
		{"a bare pod is its own service", Pod{}, "pod-1"},
		{"an annotation wins over everything", Pod{Annotations: labels{Annotation: "said"}, Labels: every, Owners: replicaSet}, "said"},
		{"an empty annotation is absent", Pod{Annotations: labels{Annotation: ""}, Labels: labels{instance: "i"}}, "i"},
		{"other annotations name nothing", Pod{Annotations: labels{"resource.opentelemetry.io/service.namespace": "x"}}, "pod-1"},

		{"LeaderWorkerSet first", Pod{Labels: every}, "lws"},
		{"Ray second", Pod{Labels: without(GroupLabels[0])}, "ray"},
		{"JobSet third", Pod{Labels: without(GroupLabels[:2]...)}, "jobset"},
		{"Kubeflow fourth", Pod{Labels: without(GroupLabels[:3]...)}, "kubeflow"},
		{"Volcano fifth", Pod{Labels: without(GroupLabels[:4]...)}, "volcano"},
		{"an empty group label is absent", Pod{Labels: labels{GroupLabels[0]: "", GroupLabels[4]: "volcano"}}, "volcano"},
		{"a worker of a LeaderWorkerSet belongs to it and not to its StatefulSet", Pod{Labels: labels{GroupLabels[0]: "llama"}, Owners: []Owner{{"StatefulSet", "llama-3"}}}, "llama"},
		{"KubeRay calls every pod's application kuberay", Pod{Labels: labels{GroupLabels[1]: "llama", name: "kuberay"}, Owners: []Owner{{"RayCluster", "llama"}}}, "llama"},

		{"instance before name", Pod{Labels: without(GroupLabels[:]...), Owners: replicaSet}, "i"},
		{"name before the owner", Pod{Labels: labels{name: "n"}, Owners: replicaSet}, "n"},
		{"app names nothing in a cluster", Pod{Labels: labels{"app": "a"}}, "pod-1"},
		{"an empty instance hides the name", Pod{Labels: labels{instance: "", name: "n"}, Owners: replicaSet}, "pod-1"},
		{"an empty name beside an instance", Pod{Labels: labels{instance: "i", name: ""}}, "i"},

		{"Deployment", Pod{Labels: labels{hash: "7d9c6b5f4"}, Owners: replicaSet}, "chat"},
		{"a ReplicaSet of its own", Pod{Owners: replicaSet}, "chat-7d9c6b5f4"},
		{"a hash that is another's", Pod{Labels: labels{hash: "aaaa"}, Owners: replicaSet}, "chat-7d9c6b5f4"},
		{"nothing before the hash", Pod{Labels: labels{hash: "7d9c"}, Owners: []Owner{{"ReplicaSet", "-7d9c"}}}, "-7d9c"},
		{"StatefulSet", Pod{Owners: []Owner{{"StatefulSet", "db"}}}, "db"},
		{"DaemonSet", Pod{Owners: []Owner{{"DaemonSet", "agent"}}}, "agent"},
		{"Job", Pod{Owners: []Owner{{"Job", "train"}}}, "train"},
		{"CronJob", Pod{Owners: []Owner{{"Job", "train-29753760"}}}, "train"},
		{"CronJob, a day late", Pod{Owners: []Owner{{"Job", "train-29752320"}}}, "train"},
		{"a Job whose number is older than a day", Pod{Owners: []Owner{{"Job", "train-29752319"}}}, "train-29752319"},
		{"a Job named after a date", Pod{Owners: []Owner{{"Job", "train-20260728"}}}, "train-20260728"},
		{"a Job with seven digits", Pod{Owners: []Owner{{"Job", "train-2975376"}}}, "train-2975376"},
		{"other kinds own nothing", Pod{Owners: []Owner{{"RayCluster", "r"}, {"PyTorchJob", "p"}}}, "pod-1"},
		{"the last of several owners", Pod{Owners: []Owner{{"StatefulSet", "db"}, {"DaemonSet", "agent"}, {"Node", "n"}}}, "agent"},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			tt.pod.Name, tt.pod.Created = "pod-1", created
			assert.Equal(t, tt.want, FromPod(tt.pod))
		})
	}
}

func TestOwnersOf(t *testing.T) {
	o := OwnersOf(Pod{
		Name: "p", Created: created, Labels: labels{"pod-template-hash": "abc"},
		Owners: []Owner{{"ReplicaSet", "d-abc"}, {"StatefulSet", "s"}, {"DaemonSet", "ds"}, {"Job", "c-29753760"}},
	})
	assert.Equal(t, Owners{Deployment: "d", StatefulSet: "s", DaemonSet: "ds", Job: "c-29753760", CronJob: "c", service: "c"}, o)
	assert.Equal(t, Owners{service: "p"}, OwnersOf(Pod{Name: "p"}))
}
