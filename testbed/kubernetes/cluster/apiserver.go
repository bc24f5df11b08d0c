// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const apiServer = "kube-apiserver"

// frontProxy is the user that passes on requests for APIs of other servers.
const frontProxy = "front-proxy"

// apiServerFiles writes the certificates of the API server, and returns the arguments
// that name them. An APIService is reached at the address of its Service: an
// ExternalName and the port that the APIService names.
func apiServerFiles(dir string, ca *authority) ([]string, error) {
	cert, key, err := ca.server("kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return nil, err
	}
	certFile, keyFile, err := writePair(dir, "apiserver", cert, key)
	if err != nil {
		return nil, err
	}
	if cert, key, err = ca.client(frontProxy); err != nil {
		return nil, err
	}
	proxyCert, proxyKey, err := writePair(dir, frontProxy, cert, key)
	return []string{
		"--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile, "--client-ca-file=" + ca.file(),
		"--proxy-client-cert-file=" + proxyCert, "--proxy-client-key-file=" + proxyKey,
		"--requestheader-client-ca-file=" + ca.file(), "--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
	}, err
}

// StartAPIServer starts the API server, at the port and with the data that it
// had, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.programs.find(apiServer) != nil {
		return errors.New("the API server runs")
	}
	if err := c.programs.start(apiServer, c.apiServerArgs...); err != nil {
		return err
	}
	return c.Wait(ctx, "the API server", func(ctx context.Context) error {
		_, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// StopAPIServer ends the API server alone, as a crash does: clients are refused
// until StartAPIServer. The other programs go on and keep trying. Asked to end, it
// would wait for the watches of its clients until it is killed.
func (c *Cluster) StopAPIServer() error {
	p := c.programs.take(apiServer)
	if p == nil {
		return errors.New("the API server does not run")
	}
	p.kill()
	return nil
}

// waitForServiceAccount waits for the account, without which no pod is
// admitted; the controller manager creates it in every namespace.
func (c *Cluster) waitForServiceAccount(ctx context.Context, namespace, name string) error {
	return c.Wait(ctx, "service account "+namespace+"/"+name, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
}

// tokenLifetime is how long the token of Kubeconfig is valid.
const tokenLifetime = 24 * 3600 // seconds

// AdminKubeconfig is the path of a kubeconfig that may do everything.
func (c *Cluster) AdminKubeconfig() string { return c.users.file("admin") }

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
	return c.users.write(name, &clientcmdapi.AuthInfo{Token: token.Status.Token})
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
