// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// Methods of the kubelet's pod-resources API.
const (
	methodList        = "/v1.PodResourcesLister/List"
	methodAllocatable = "/v1.PodResourcesLister/GetAllocatableResources"
)

var errNoMessage = errors.New("the answer is no message of the pod-resources API")

// countPods counts the pods of a ListPodResourcesResponse, and the devices that
// their containers hold by a device plugin.
func countPods(message []byte) (pods, devices int, err error) {
	err = each(message, func(field protowire.Number, pod []byte) error {
		if field != 1 { // pod_resources
			return nil
		}
		pods++
		return each(pod, func(field protowire.Number, container []byte) error {
			if field != 3 { // containers
				return nil
			}
			n, err := countDevices(container, 2)
			devices += n
			return err
		})
	})
	return pods, devices, err
}

// countAllocatable counts the devices of an AllocatableResourcesResponse.
func countAllocatable(message []byte) (int, error) { return countDevices(message, 1) }

// countDevices counts the ids in the ContainerDevices of a field.
func countDevices(message []byte, of protowire.Number) (n int, err error) {
	err = each(message, func(field protowire.Number, devices []byte) error {
		if field != of {
			return nil
		}
		return each(devices, func(field protowire.Number, _ []byte) error {
			if field == 2 { // device_ids
				n++
			}
			return nil
		})
	})
	return n, err
}

// each calls do with every field that has a length: messages and strings.
func each(message []byte, do func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errNoMessage
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return errNoMessage
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := do(number, value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}
