// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package gpueventsconnector

import (
	"testing"
	"testing/synctest"
	"time"
)

const interval = 15 * time.Second

// A GPU that gets hot, hotter, cools a little, and then enough.
func TestTemperatureStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(start(t, deviceSet))
		s.narrate("85 is not above high")
		s.every(interval, 30, one(gpu{hot: 85, pod: "chat-0"}))
		s.narrate("86 for 5 minutes")
		s.every(interval, 21, one(gpu{hot: 86, pod: "chat-0"}))
		s.narrate("91 for 2 minutes")
		s.every(interval, 9, one(gpu{hot: 91, pod: "chat-1"}))
		s.narrate("down to 83: not yet below by 3 degrees")
		s.every(interval, 20, one(gpu{hot: 83, pod: "chat-1"}))
		s.narrate("82")
		s.every(interval, 2, one(gpu{hot: 82}))
		s.narrate("its memory at 106")
		s.every(interval, 9, one(gpu{hot: 70, hbm: 106}))
		s.golden("temperature")
	})
}
