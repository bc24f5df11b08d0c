// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigs writes files that give users access to the API server.
type kubeconfigs struct {
	dir    string
	server string // URL
	ca     *authority
}

// file is the path of a user's kubeconfig.
func (k *kubeconfigs) file(name string) string { return filepath.Join(k.dir, name+".kubeconfig") }

// writePrograms writes the kubeconfig of each program and the administrator's, and
// returns the access of the latter.
func (k *kubeconfigs) writePrograms() (*rest.Config, error) {
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
		cert, key, err := k.ca.client(user.name, user.groups...)
		if err != nil {
			return nil, err
		}
		info := &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		if _, err := k.write(user.file, info); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", k.file("admin"))
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400 // tests do in seconds what people do in a day
	return config, nil
}

// write writes the kubeconfig of a user, and returns its path.
func (k *kubeconfigs) write(name string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["testbed"] = &clientcmdapi.Cluster{Server: k.server, CertificateAuthorityData: k.ca.pem}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "testbed", AuthInfo: name}
	config.CurrentContext = name
	file := k.file(name)
	return file, clientcmd.WriteToFile(*config, file)
}
