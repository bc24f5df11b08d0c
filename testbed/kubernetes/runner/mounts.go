// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// mount makes the pod's volumes and returns where each container has them. What a
// volume needs may come later: its error is what the pod waits for.
func (p *pod) mount(ctx context.Context) error {
	volumes := map[string]string{}
	for _, v := range p.spec.Spec.Volumes {
		dir, err := p.volume(ctx, v)
		if err != nil {
			return fmt.Errorf("volume %s: %w", v.Name, err)
		}
		volumes[v.Name] = dir
	}
	for _, c := range slices.Concat(p.spec.Spec.InitContainers, p.spec.Spec.Containers) {
		mounts := map[string]string{}
		for _, m := range c.VolumeMounts {
			dir, ok := volumes[m.Name]
			if !ok || m.SubPathExpr != "" {
				return fmt.Errorf("mount %s: no such volume, or an expression of a path", m.MountPath)
			}
			mounts[filepath.Clean(m.MountPath)] = filepath.Join(dir, m.SubPath)
		}
		p.mu.Lock()
		p.mounts[c.Name] = mounts
		p.mu.Unlock()
		if account := mounts[accountPath]; account != "" {
			if err := p.writeKubeconfig(account); err != nil {
				return err
			}
		}
	}
	// Only now it is known what paths are called, in every file of every volume.
	for _, v := range p.spec.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		if err := p.rewriteFiles(v.Name, volumes[v.Name]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pod) volume(ctx context.Context, v corev1.Volume) (string, error) {
	dir := filepath.Join(p.dir, "volumes", v.Name)
	switch {
	case v.HostPath != nil:
		if p.r.opts.HostPath == nil {
			dir = filepath.Join(p.r.opts.Dir, "nodes", p.spec.Spec.NodeName, v.HostPath.Path)
			return dir, os.MkdirAll(dir, 0o755)
		}
		return p.r.opts.HostPath(p.spec.Spec.NodeName, v.HostPath.Path)
	case v.PersistentVolumeClaim != nil:
		claim, err := p.r.opts.Cluster.Client().CoreV1().PersistentVolumeClaims(p.spec.Namespace).Get(ctx, v.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if claim.Spec.VolumeName == "" {
			return "", errors.New("the claim is not bound")
		}
		return p.r.volumeDir(claim.Spec.VolumeName), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	switch {
	case v.EmptyDir != nil:
		return dir, nil
	case v.ConfigMap != nil:
		return dir, p.writeConfigMap(ctx, dir, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		return dir, p.writeSecret(ctx, dir, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if err := p.project(ctx, dir, s); err != nil {
				return "", err
			}
		}
		return dir, nil
	}
	return "", errors.New("the runner knows no such volume")
}

func (p *pod) project(ctx context.Context, dir string, s corev1.VolumeProjection) error {
	switch {
	case s.ConfigMap != nil:
		return p.writeConfigMap(ctx, dir, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional)
	case s.Secret != nil:
		return p.writeSecret(ctx, dir, s.Secret.Name, s.Secret.Items, s.Secret.Optional)
	case s.DownwardAPI != nil:
		for _, item := range s.DownwardAPI.Items {
			value, err := p.field(item.FieldRef.FieldPath)
			if err == nil {
				err = write(dir, item.Path, []byte(value))
			}
			if err != nil {
				return err
			}
		}
		return nil
	case s.ServiceAccountToken != nil:
		request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(24 * 3600)), // it is not renewed here
			BoundObjectRef:    &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.spec.Name, UID: p.spec.UID},
		}}
		if s.ServiceAccountToken.Audience != "" {
			request.Spec.Audiences = []string{s.ServiceAccountToken.Audience}
		}
		token, err := p.r.opts.Cluster.Client().CoreV1().ServiceAccounts(p.spec.Namespace).CreateToken(ctx, p.spec.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return write(dir, s.ServiceAccountToken.Path, []byte(token.Status.Token))
	}
	return errors.New("the runner knows no such projection")
}

func (p *pod) writeConfigMap(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool) error {
	object, err := p.r.opts.Cluster.Client().CoreV1().ConfigMaps(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
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

func (p *pod) writeSecret(ctx context.Context, dir, name string, items []corev1.KeyToPath, optional *bool) error {
	object, err := p.r.opts.Cluster.Client().CoreV1().Secrets(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
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

// rewriteFiles makes the files of a ConfigMap true for the container that has
// mounted it.
func (p *pod) rewriteFiles(volume, dir string) error {
	in := p.inside("")
	for _, c := range p.spec.Spec.Containers {
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			in = p.inside(c.Name)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err == nil {
			err = write(dir, f.Name(), []byte(p.r.rewrite(string(text), in)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig makes a kubeconfig of what is mounted for the API server.
func (p *pod) writeKubeconfig(account string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["in"] = &clientcmdapi.Cluster{Server: p.r.opts.Cluster.RESTConfig().Host, CertificateAuthority: filepath.Join(account, "ca.crt")}
	config.AuthInfos["pod"] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(account, "token")}
	config.Contexts["in"] = &clientcmdapi.Context{Cluster: "in", AuthInfo: "pod", Namespace: p.spec.Namespace}
	config.CurrentContext = "in"
	file := filepath.Join(p.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kubeconfig = file
	return nil
}

// field is what a fieldRef names.
func (p *pod) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return p.spec.Name, nil
	case "metadata.namespace":
		return p.spec.Namespace, nil
	case "metadata.uid":
		return string(p.spec.UID), nil
	case "spec.nodeName":
		return p.spec.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.spec.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return p.address, nil
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
