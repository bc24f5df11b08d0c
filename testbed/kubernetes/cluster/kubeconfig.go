// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is how long the token of Kubeconfig is valid.
const tokenLifetime = 24 * 3600 // seconds

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *Cluster) AdminKubeconfig() string { return c.file("admin.kubeconfig") }

// Kubeconfig writes a kubeconfig for a service account, with a token that the
// API server issued for it, and returns the file's path. It creates namespace
// and account where they are missing: what the account may do is what roles
// bound to it report.
func (c *Cluster) Kubeconfig(ctx context.Context, namespace, account string) (string, error) {
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		return "", err
	}
	accounts := c.client.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	seconds := int64(tokenLifetime)
	token, err := accounts.CreateToken(ctx, account,
		&authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s/%s: %w", namespace, account, err)
	}
	name := namespace + "." + account
	return c.writeKubeconfig(name, c.config.Host, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// CreateNamespace creates a namespace, if it is missing, and returns when pods
// can be created in it.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return c.waitForServiceAccount(ctx, name, "default")
}

// kubeconfigs writes the kubeconfig of each program and the administrator's, and
// returns the latter's access.
func (c *Cluster) kubeconfigs(server string) (*rest.Config, error) {
	masters := []string{"system:masters"}
	for _, user := range []struct {
		file, name string
		groups     []string
	}{
		{"admin", "admin", masters},
		{"kwok", "kwok", masters}, // it acts for every node
		{"kube-controller-manager", "system:kube-controller-manager", nil},
		{"kube-scheduler", "system:kube-scheduler", nil},
	} {
		cert, key, err := c.ca.client(user.name, user.groups...)
		if err != nil {
			return nil, err
		}
		info := &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		if _, err := c.writeKubeconfig(user.file, server, info); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400 // tests do in seconds what people do in a day
	return config, nil
}

func (c *Cluster) writeKubeconfig(name, server string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["testbed"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.ca.pem}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: name}
	config.CurrentContext = name
	file := c.file(name + ".kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}
