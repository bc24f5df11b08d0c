// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// Objects reads the objects of a manifest. A field that its kind does not have is an
// error.
func Objects(file string) ([]runtime.Object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, object)
	}
}

// Apply creates the objects of a manifest, of which the API server checks every
// field, and returns the path of a kubeconfig of its service account, "" if it has
// none.
func Apply(ctx context.Context, c *Cluster, file string) (kubeconfig string, err error) {
	objects, err := Objects(file)
	if err != nil {
		return "", err
	}
	var account *corev1.ServiceAccount
	for _, object := range objects {
		if o, ok := object.(*corev1.ServiceAccount); ok {
			account = o
			if err := c.CreateNamespace(ctx, o.Namespace); err != nil { // another manifest may have it
				return "", err
			}
		}
		if err := create(ctx, c.Client(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	if account == nil {
		return "", nil
	}
	return c.Kubeconfig(ctx, account.Namespace, account.Name)
}

func create(ctx context.Context, client kubernetes.Interface, object runtime.Object) (err error) {
	o := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	switch x := object.(type) {
	case *corev1.Namespace:
		_, err = client.CoreV1().Namespaces().Create(ctx, x, o)
	case *corev1.ServiceAccount:
		_, err = client.CoreV1().ServiceAccounts(x.Namespace).Create(ctx, x, o)
	case *rbacv1.ClusterRole:
		_, err = client.RbacV1().ClusterRoles().Create(ctx, x, o)
	case *rbacv1.ClusterRoleBinding:
		_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, x, o)
	case *appsv1.DaemonSet:
		_, err = client.AppsV1().DaemonSets(x.Namespace).Create(ctx, x, o)
	default:
		err = fmt.Errorf("a %T is not known here", object)
	}
	return err
}
