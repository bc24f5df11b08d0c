// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package share

// maxCommon bounds the common denominator of a board's shares: a weight times the
// milliseconds of a year stays an int64, also when the shares of many are scaled.
const maxCommon = 1 << 26

// Divide writes the weights of shares of one board into weights, which is as long, and
// returns what all of the board weighs: weights[i]/whole is the share. What the weights
// lack of whole is not in any share.
//
// Shares of more than the board are scaled to it, and over is true. A share that is not
// Valid weighs nothing.
func Divide(shares []Fraction, weights []int64) (whole int64, over bool) {
	whole = 1
	for _, s := range shares {
		if !s.Valid() {
			continue
		}
		whole *= s.Q / gcd(whole, s.Q)
		if whole > maxCommon {
			whole = maxCommon
			break
		}
	}
	sum := int64(0)
	for i, s := range shares {
		weights[i] = 0
		if s.Valid() {
			// Exact where whole is a multiple of Q.
			weights[i] = max(1, whole*s.P/s.Q)
		}
		sum += weights[i]
	}
	if sum > whole {
		return sum, true
	}
	return whole, false
}

// Apportion divides amount by weights, which add up to whole, into whole numbers that add
// up to amount, none of them below 0. carried[i] is what the i-th was given too little
// (above 0) or too much, in units of 1/whole; it is taken into account and updated, so
// that over many calls with the same weights no part gains on another. The carried values
// of one set of weights add up to 0, as they do at the start, when all are 0.
func Apportion(amount int64, weights []int64, whole int64, carried, parts []int64) {
	left := amount
	for i, w := range weights {
		due := w*amount + carried[i]
		parts[i] = max(0, due/whole)
		carried[i] = due - parts[i]*whole
		left -= parts[i]
	}
	for ; left > 0; left-- {
		most := 0
		for i := range carried {
			if carried[i] > carried[most] {
				most = i
			}
		}
		parts[most]++
		carried[most] -= whole
	}
	for ; left < 0; left++ {
		least := -1
		for i := range carried {
			if parts[i] > 0 && (least < 0 || carried[i] < carried[least]) {
				least = i
			}
		}
		parts[least]--
		carried[least] += whole
	}
}
