// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube asks the API of the cluster that a collector runs in.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/config"
	"github.com/otelcol-gpu/otelcol-gpu/cmd/gpuctl/internal/doctor/web"
	"github.com/otelcol-gpu/otelcol-gpu/internal/k8sclient"
)

// OldestMinor is the oldest minor version of Kubernetes with a kubelet that lists what
// is allocatable.
const OldestMinor = 23

// MaxPods is how many pods one list gives.
const MaxPods = 500

// Client connects when it is first asked.
type Client struct {
	// Unused is why nothing asks the API. Empty: something does.
	Unused  string
	connect func() (*connection, error)
}

type connection struct {
	client *http.Client
	base   *url.URL
	rest   *rest.RESTClient
	params runtime.ParameterCodec
}

// New returns a client that connects as the collector does. as is the user to
// impersonate, if any. onlyCluster: there is no collector, only a cluster to ask.
func New(c *config.Configuration, as string, onlyCluster bool) *Client {
	auth, used := authOf(c, as != "", onlyCluster)
	if !used {
		return &Client{Unused: "nothing in the configuration asks the Kubernetes API"}
	}
	return &Client{connect: sync.OnceValues(func() (*connection, error) {
		cfg, err := auth.REST("gpuctl")
		if err != nil {
			return nil, err
		}
		cfg.Impersonate.UserName = as
		cfg.QPS = -1 // a few requests in all
		c := &connection{}
		if c.client, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, err
		}
		if c.base, _, err = rest.DefaultServerUrlFor(cfg); err != nil {
			return nil, err
		}
		// The client of all of Kubernetes' types would treble the program.
		types := runtime.NewScheme()
		added := runtime.NewSchemeBuilder(corev1.AddToScheme, authorizationv1.AddToScheme)
		if err = added.AddToScheme(types); err != nil {
			return nil, err
		}
		c.params = runtime.NewParameterCodec(types)
		cfg.GroupVersion, cfg.NegotiatedSerializer = &corev1.SchemeGroupVersion, serializer.NewCodecFactory(types).WithoutConversion()
		c.rest, err = rest.RESTClientForConfigAndClient(cfg, c.client)
		return c, err
	})}
}

// Pods lists pods of a namespace, or of all where that is empty.
func (c *Client) Pods(ctx context.Context, namespace string, options metav1.ListOptions) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.list(ctx, "pods", namespace, options, &list)
	return list.Items, err
}

// Nodes lists nodes.
func (c *Client) Nodes(ctx context.Context, options metav1.ListOptions) ([]corev1.Node, error) {
	var list corev1.NodeList
	err := c.list(ctx, "nodes", metav1.NamespaceAll, options, &list)
	return list.Items, err
}

func (c *Client) list(ctx context.Context, resource, namespace string, options metav1.ListOptions, into runtime.Object) error {
	connected, err := c.connect()
	if err != nil {
		return err
	}
	request := connected.rest.Get().AbsPath("/api/v1").Resource(resource).VersionedParams(&options, connected.params)
	if namespace != metav1.NamespaceAll {
		request.Namespace(namespace)
	}
	return request.Do(ctx).Into(into)
}

// Allowed is whether the account has a right.
func (c *Client) Allowed(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	connected, err := c.connect()
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	err = connected.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(review).Do(ctx).Into(review)
	return review.Status.Allowed, err
}

// Version asks for the version of the API server. The answer has its clock.
func (c *Client) Version(ctx context.Context) (version.Info, *web.Answer, error) {
	var info version.Info
	connected, err := c.connect()
	if err != nil {
		return info, nil, err
	}
	a, err := web.Get(ctx, connected.client, connected.base.JoinPath("version").String(), http.Header{"Accept": {"application/json"}})
	if err != nil {
		return info, nil, err
	}
	if a.Status >= http.StatusMultipleChoices {
		refused := &apierrors.StatusError{}
		if json.Unmarshal(a.Body, &refused.ErrStatus) != nil || refused.ErrStatus.Code == 0 {
			refused.ErrStatus = metav1.Status{Code: int32(a.Status), Message: http.StatusText(a.Status), Reason: reasons[a.Status]}
		}
		return info, a, refused
	}
	if err := json.Unmarshal(a.Body, &info); err != nil {
		return info, a, fmt.Errorf("it is no Kubernetes API: %w", err)
	}
	return info, a, nil
}

// reasons of statuses without a body of Kubernetes' own, as from a proxy.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden:    metav1.StatusReasonForbidden,
}

// Why names in a few words why a request failed.
func Why(err error) string {
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return fmt.Sprintf("it answers %d: %s", refused.Status().Code, refused.Status().Message)
	}
	return web.Why(err)
}

// authOf is how the collector authenticates with the Kubernetes API, and whether it
// uses it at all. Impersonation needs the account of the user of gpuctl.
func authOf(c *config.Configuration, impersonate, onlyCluster bool) (k8sclient.Config, bool) {
	own := k8sclient.Config{AuthType: k8sclient.ServiceAccount}
	_, inCluster := os.LookupEnv("KUBERNETES_SERVICE_HOST")
	if !inCluster {
		own.AuthType = k8sclient.KubeConfig
	}
	if onlyCluster {
		return own, true
	}
	components := append(c.Allocations(), c.Of("processors", "k8s_attributes", "k8sattributes")...)
	for _, component := range append(components, c.Of("processors", "gpu_summary")...) {
		var cfg struct {
			AuthType     k8sclient.AuthType `mapstructure:"auth_type"`
			Context      string             `mapstructure:"context"`
			ExpectedPods string             `mapstructure:"expected_pods"`
			Optional     bool               `mapstructure:"optional"`
		}
		// What is optional does without the API where it is in no cluster.
		if component.Read(&cfg) != nil || cfg.AuthType == k8sclient.None || cfg.Optional && !inCluster ||
			strings.HasPrefix(component.ID, "gpu_summary") && cfg.ExpectedPods != "kubernetes" {
			continue
		}
		if cfg.AuthType == "" {
			cfg.AuthType = k8sclient.ServiceAccount
		}
		if impersonate {
			return own, true
		}
		return k8sclient.Config{AuthType: cfg.AuthType, Context: cfg.Context}, true
	}
	for _, d := range c.Exporters() {
		if d.Kubernetes != nil {
			return own, true
		}
	}
	return own, false
}

// TagOf is the tag of an image, or its digest where it has none.
func TagOf(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	return digest
}
