// Copyright The otelcol-gpu Authors
// SPDX-License-Identifier: Apache-2.0

package prices

import (
	"errors"
	"math"
	"math/bits"
	"strings"

	"github.com/otelcol-gpu/otelcol-gpu/internal/exact"
)

// nano is one unit of the currency in the unit of amounts.
const nano = 1_000_000_000

// Rate is the price of a whole GPU for an hour: Nano billionths of the currency, divided
// by Per. The zero value is an unknown price, which is not a price of 0.
type Rate struct{ Nano, Per int64 }

// Known reports whether there is a price.
func (r Rate) Known() bool { return r.Per > 0 }

// Cost returns what milliseconds of a GPU cost, in billionths of the currency, rounded
// down.
func (r Rate) Cost(ms int64) int64 {
	const hour = 3_600_000
	return exact.MulDiv(ms, r.Nano, r.Per*hour)
}

// Money returns what milliseconds of a GPU cost, rounded down to a billionth.
func (r Rate) Money(ms int64) Money {
	const hour = 3_600_000
	hi, lo := bits.Mul64(uint64(ms), uint64(r.Nano))
	by := uint64(r.Per * hour)
	high, rest := hi/by, hi%by
	low, _ := bits.Div64(rest, lo, by)
	if high >= nano {
		return Money{math.MaxInt64, 0} // more than there is
	}
	whole, part := bits.Div64(high, low, nano)
	return Money{int64(min(whole, math.MaxInt64)), int64(part)}
}

// Hour returns the price of an hour in the currency, for a gauge.
func (r Rate) Hour() float64 { return float64(r.Nano) / float64(r.Per) / nano }

// maxDigits is how long a decimal may be, before and after the point together.
const maxDigits = 18

var errDecimal = errors.New(`write a decimal number of 0 or more as text, such as "2.95", with at most nine digits before and nine after the point`)

// ParseDecimal reads a decimal number of 0 or more into billionths, without a float:
// what is written is what counts.
func ParseDecimal(text string) (int64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if len(whole) == 0 || len(whole) > maxDigits/2 || len(fraction) > maxDigits/2 || point && fraction == "" {
		return 0, errDecimal
	}
	for _, digits := range []string{whole, fraction} {
		if strings.Trim(digits, "0123456789") != "" {
			return 0, errDecimal
		}
	}
	n, err := exact.ParseDecimal(text, maxDigits/2)
	if err != nil {
		return 0, errDecimal
	}
	return n, nil
}

// rate is amount·fraction/gpus, amount and fraction in billionths.
func rate(amount, fraction, gpus int64) Rate {
	return reduce(exact.MulDiv(amount, fraction, nano), gpus)
}

// reduce returns a rate in lowest terms, so that equal prices are equal.
func reduce(n, per int64) Rate {
	a, b := n, per
	for b != 0 {
		a, b = b, a%b
	}
	return Rate{n / a, per / a}
}
