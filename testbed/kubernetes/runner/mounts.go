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

	corev1 "k8s.io/api/core/v1"
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
		return p.r.volumes.folder(claim.Spec.VolumeName), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	switch {
	case v.EmptyDir != nil:
		return dir, nil
	case v.ConfigMap != nil:
		return dir, p.sources().writeConfigMap(ctx, dir, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.Secret != nil:
		return dir, p.sources().writeSecret(ctx, dir, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if err := p.sources().project(ctx, dir, s); err != nil {
				return "", err
			}
		}
		return dir, nil
	}
	return "", errors.New("the runner knows no such volume")
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
