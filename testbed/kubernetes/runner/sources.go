// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// sources are what environment and volumes of a pod are made of: ConfigMaps, Secrets,
// tokens and fields of the pod itself.
type sources struct {
	client  kubernetes.Interface
	pod     *corev1.Pod
	address string // of the pod
}

func (s sources) env(ctx context.Context, from corev1.EnvFromSource) (map[string]string, error) {
	client := s.client.CoreV1()
	if from.ConfigMapRef != nil {
		object, err := client.ConfigMaps(s.pod.Namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{})
		return object.Data, err
	}
	object, err := client.Secrets(s.pod.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
	data := map[string]string{}
	for k, v := range object.Data {
		data[k] = string(v)
	}
	return data, err
}

// valueFrom is the value of a variable; false if it is optional and not there.
func (s sources) value(ctx context.Context, c *corev1.Container, from *corev1.EnvVarSource) (string, bool, error) {
	client := s.client.CoreV1()
	optional := func(o *bool, there bool, what string) (bool, error) {
		if !there && (o == nil || !*o) {
			return false, errors.New("no " + what)
		}
		return there, nil
	}
	switch {
	case from.FieldRef != nil:
		value, err := s.field(from.FieldRef.FieldPath)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		value, err := limit(c, from.ResourceFieldRef)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		object, err := client.ConfigMaps(s.pod.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		value, there := object.Data[ref.Key]
		ok, missing := optional(ref.Optional, err == nil && there, "key "+ref.Key+" in ConfigMap "+ref.Name)
		return value, ok, missing
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		object, err := client.Secrets(s.pod.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		value, there := object.Data[ref.Key]
		ok, missing := optional(ref.Optional, err == nil && there, "key "+ref.Key+" in Secret "+ref.Name)
		return string(value), ok, missing
	}
	return "", false, errors.New("the runner knows no such source")
}

func (s sources) project(ctx context.Context, dir string, from corev1.VolumeProjection) error {
	switch {
	case from.ConfigMap != nil:
		return s.writeConfigMap(ctx, dir, from.ConfigMap.Name, from.ConfigMap.Items, from.ConfigMap.Optional)
	case from.Secret != nil:
		return s.writeSecret(ctx, dir, from.Secret.Name, from.Secret.Items, from.Secret.Optional)
	case from.DownwardAPI != nil:
		for _, item := range from.DownwardAPI.Items {
			value, err := s.field(item.FieldRef.FieldPath)
			if err == nil {
				err = write(dir, item.Path, []byte(value))
			}
			if err != nil {
				return err
			}
		}
		return nil
	case from.ServiceAccountToken != nil:
		request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(24 * 3600)), // it is not renewed here
			BoundObjectRef:    &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID},
		}}
		if from.ServiceAccountToken.Audience != "" {
			request.Spec.Audiences = []string{from.ServiceAccountToken.Audience}
		}
		token, err := s.client.CoreV1().ServiceAccounts(s.pod.Namespace).CreateToken(ctx, s.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return write(dir, from.ServiceAccountToken.Path, []byte(token.Status.Token))
	}
	return errors.New("the runner knows no such projection")
}

func (s sources) writeConfigMap(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool) error {
	object, err := s.client.CoreV1().ConfigMaps(s.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for k, v := range object.Data {
		data[k] = []byte(v)
	}
	for k, v := range object.BinaryData {
		data[k] = v
	}
	return writeAll(dir, data, items, optional)
}

func (s sources) writeSecret(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool) error {
	object, err := s.client.CoreV1().Secrets(s.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	if err != nil {
		return err
	}
	return writeAll(dir, object.Data, items, optional)
}

// writeAll writes the named keys, or all where none is named.
func writeAll(dir string, data map[string][]byte, items []corev1.KeyToPath, optional *bool) error {
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && optional != nil && *optional {
			continue
		}
		if !ok {
			return fmt.Errorf("no key %s", item.Key)
		}
		if err := write(dir, item.Path, value); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, path string, data []byte) error {
	file := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// field is what a fieldRef names.
func (s sources) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return s.pod.Name, nil
	case "metadata.namespace":
		return s.pod.Namespace, nil
	case "metadata.uid":
		return string(s.pod.UID), nil
	case "spec.nodeName":
		return s.pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return s.pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return s.address, nil
	case "status.hostIP":
		return "127.0.0.1", nil
	}
	return "", fmt.Errorf("the runner knows no field %s", path)
}

// limit is what a resourceFieldRef names, in units of its divisor.
func limit(c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	lists := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}
	for kind, list := range lists {
		for name, quantity := range list {
			if ref.Resource != kind+"."+string(name) {
				continue
			}
			divisor := max(ref.Divisor.Value(), 1)
			return strconv.FormatInt((quantity.Value()+divisor-1)/divisor, 10), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", c.Name, ref.Resource)
}
