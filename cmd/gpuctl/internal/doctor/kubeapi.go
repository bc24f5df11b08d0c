// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
)

// kubeAPI asks the Kubernetes API with plain requests: the typed clients would be
// half of the program. It connects when it is first asked.
type kubeAPI struct {
	connect func() (*http.Client, *url.URL, error)
	// unused says why nothing asks the API.
	unused string
}

func newKubeAPI(in *installation) *kubeAPI {
	auth, used := in.authType()
	if !used {
		return &kubeAPI{unused: "nothing in the configuration asks the Kubernetes API"}
	}
	var once sync.Once
	var client *http.Client
	var base *url.URL
	var err error
	return &kubeAPI{connect: func() (*http.Client, *url.URL, error) {
		once.Do(func() {
			var cfg *rest.Config
			if cfg, err = auth.REST("gpuctl"); err != nil {
				return
			}
			cfg.AcceptContentTypes, cfg.ContentType = "application/json", "application/json"
			cfg.Impersonate.UserName = in.As
			if client, err = rest.HTTPClientFor(cfg); err != nil {
				return
			}
			base, _, err = rest.DefaultServerUrlFor(cfg)
		})
		return client, base, err
	}}
}

// apiError is what the API answers in the place of what it was asked for.
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string { return fmt.Sprintf("it answers %d: %s", e.Code, e.Message) }

// ask makes one request and reads its answer. An *apiError is an answer too.
func (k *kubeAPI) ask(ctx context.Context, path string, query url.Values, body, into any) (*answer, error) {
	client, base, err := k.connect()
	if err != nil {
		return nil, err
	}
	target := base.JoinPath(path)
	target.RawQuery = query.Encode()
	method, header := http.MethodGet, http.Header{"Accept": {"application/json"}}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		method, reader = http.MethodPost, bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	a, err := do(ctx, client, method, target.String(), header, reader)
	if err != nil {
		return nil, err
	}
	if a.status >= http.StatusMultipleChoices {
		e := &apiError{}
		if json.Unmarshal(a.body, e) != nil || e.Code == 0 {
			e = &apiError{Code: a.status, Message: http.StatusText(a.status)}
		}
		return a, e
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return a, fmt.Errorf("it is no Kubernetes API: %w", err)
	}
	return a, nil
}

// pod is as much of a pod as is looked at.
type pod struct {
	Metadata struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName   string      `json:"nodeName"`
		Containers []container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase  string `json:"phase"`
		PodIP  string `json:"podIP"`
		Reason string `json:"reason"`
	} `json:"status"`
}

type container struct {
	Name  string          `json:"name"`
	Image string          `json:"image"`
	Ports []containerPort `json:"ports"`
}

type containerPort struct {
	ContainerPort int `json:"containerPort"`
}

type podList struct {
	Items []pod `json:"items"`
}

// maxPods is how many pods one list gives.
const maxPods = "500"
