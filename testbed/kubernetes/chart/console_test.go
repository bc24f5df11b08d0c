// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// console reads the pages of a gateway on the pod's own loopback, as kubectl
// port-forward would.
type console struct {
	w         *world
	namespace string
	pod       string
}

func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, response.Status, text)
	}
	return text, err
}

// json reads what a port of the pod's loopback answers.
func (c console) json(ctx context.Context, port int, path string, into any) error {
	in, err := c.w.runner.Pod(c.namespace, c.pod)
	if err != nil {
		return err
	}
	return getJSON(ctx, "http://"+in.Loopback+":"+strconv.Itoa(port)+path, into)
}

func getJSON(ctx context.Context, address string, into any) error {
	text, err := get(ctx, address)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// service is a service as the console has it.
type service struct {
	Service   string
	Namespace string
	Partial   *bool
	Attention []string
	Values    map[string]*float64
	Pods      map[string]*float64
	DataTime  time.Time `json:"data_time"`
}

func (c console) service(ctx context.Context, name string) (service, error) {
	var answer struct{ Services []service }
	if err := c.json(ctx, 8480, "/api/v1/services", &answer); err != nil {
		return service{}, err
	}
	for _, s := range answer.Services {
		if s.Service == name {
			return s, nil
		}
	}
	return service{}, fmt.Errorf("no service %s among %d", name, len(answer.Services))
}

// whole is an error unless so many pods of a service report, with numbers that are
// younger than a moment: what was known before a restart does not count.
func (c console) whole(ctx context.Context, since time.Time, name string, pods float64) error {
	s, err := c.service(ctx, name)
	if err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	number := func(m map[string]*float64, key string) float64 {
		if m[key] == nil {
			return -1
		}
		return *m[key]
	}
	if !s.DataTime.After(since) || s.Partial == nil || *s.Partial || number(s.Pods, "reporting") != pods || number(s.Pods, "missing") != 0 || number(s.Values, "utilization") < 0 {
		return errors.New(string(text))
	}
	return nil
}

// event is one that the console lists.
type event struct {
	ID, Name, Key, State string
	Subject              struct{ Service, Node, Pod *string }
}

// events are those of a name, oldest first, as "node or service: state".
func (c console) events(ctx context.Context, name string) ([]string, error) {
	var answer struct{ Events []event }
	if err := c.json(ctx, 8480, "/api/v1/events?limit=100&name="+url.QueryEscape(name), &answer); err != nil {
		return nil, err
	}
	out := []string{}
	for i := len(answer.Events) - 1; i >= 0; i-- {
		e := answer.Events[i]
		about := ""
		for _, part := range []*string{e.Subject.Service, e.Subject.Node} {
			if part != nil {
				about = *part
			}
		}
		out = append(out, about+": "+e.State)
	}
	return out, nil
}

// query asks the store, over its whole memory, for one number.
func (c console) query(ctx context.Context, expression string) (float64, error) {
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := c.json(ctx, 9090, "/api/v1/query?query="+url.QueryEscape(expression), &answer); err != nil {
		return 0, err
	}
	if len(answer.Data.Result) != 1 {
		return 0, fmt.Errorf("%s has %d results", expression, len(answer.Data.Result))
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	return strconv.ParseFloat(text, 64)
}
