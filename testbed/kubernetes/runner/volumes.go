// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// StorageClass is the default one. Volumes are folders, of whatever class.
const StorageClass = "testbed"

// volumes makes and removes the volumes of claims, which are folders of dir.
type volumes struct {
	client kubernetes.Interface
	dir    string
	fail   func(what string, err error)
}

// folder is where a volume's files are.
func (v *volumes) folder(volume string) string { return filepath.Join(v.dir, volume) }

func (v *volumes) createStorageClass(ctx context.Context) error {
	reclaim, mode := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	_, err := v.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: StorageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "testbed/folder", ReclaimPolicy: &reclaim, VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// onClaim makes a volume for a claim that has none, whether or not its class is
// there.
func (v *volumes) onClaim(object any, there bool) {
	claim := object.(*corev1.PersistentVolumeClaim)
	if !there || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return
	}
	name := "pvc-" + string(claim.UID)
	dir := v.folder(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		v.fail("volume "+name, err)
		return
	}
	_, err := v.client.CoreV1().PersistentVolumes().Create(context.Background(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		v.fail("volume "+name, err)
	}
}

// onVolume removes a volume without a claim. The control plane would try by
// itself, and marks it as failed where it may not: both are its last word.
func (v *volumes) onVolume(object any, there bool) {
	volume := object.(*corev1.PersistentVolume)
	over := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	if !there || !over || !strings.HasPrefix(volume.Name, "pvc-") {
		return
	}
	if err := os.RemoveAll(v.folder(volume.Name)); err != nil {
		v.fail("volume "+volume.Name, err)
	}
	err := v.client.CoreV1().PersistentVolumes().Delete(context.Background(), volume.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		v.fail("volume "+volume.Name, err)
	}
}
