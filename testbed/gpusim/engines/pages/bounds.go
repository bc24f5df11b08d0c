// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import "github.com/otelcol-gpu/otelcol-gpu/testbed/gpusim/engines/requests"

// in are bounds that are the same for every model.
func in(bounds ...float64) func(requests.Limits) []float64 {
	return func(requests.Limits) []float64 { return bounds }
}

// oneTwoFive are 1, 2, 5, 10 … up to the most tokens that a request may have.
func oneTwoFive(l requests.Limits) (out []float64) {
	for decade := 1; ; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > l.Total {
				return out
			}
			out = append(out, float64(m*decade))
		}
	}
}

// hundredth are a hundred equal steps up to a limit.
func hundredth(of func(requests.Limits) int) func(requests.Limits) []float64 {
	return func(l requests.Limits) (out []float64) {
		for i := 1; i <= 100; i++ {
			out = append(out, float64(of(l))/100*float64(i))
		}
		return out
	}
}

// upTo are 1, 2, 3 … n.
func upTo(n int) func(requests.Limits) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i + 1)
	}
	return in(out...)
}

// growing starts with a bound and multiplies it by a factor while it is below a limit.
func growing(from, factor, below float64) func(requests.Limits) []float64 {
	var out []float64
	for v := from; v < below; v *= factor {
		out = append(out, v)
	}
	return in(out...)
}

var (
	firstTokenV0 = in(.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10)
	firstTokenV1 = in(.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
	perTokenV0   = in(.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5)
	perTokenV1   = in(.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
	requestV0    = in(1, 2.5, 5, 10, 15, 20, 30, 40, 50, 60)
	requestV1    = in(.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
	stepTokens   = in(1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
	choices      = in(1, 2, 5, 10, 20)
)
