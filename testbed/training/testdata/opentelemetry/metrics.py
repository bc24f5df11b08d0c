# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0
"""Stands in for the SDK: keeps what is recorded, and refuses arguments that the SDK does not have."""

points = []


class _Instrument:
    def __init__(self, name, unit):
        self.name, self.unit = name, unit

    def _keep(self, value, attributes=None):
        points.append([self.name, self.unit, value, attributes or {}])


class _Histogram(_Instrument):
    record = _Instrument._keep


class _Counter(_Instrument):
    def add(self, amount, attributes=None):
        assert amount >= 0
        self._keep(amount, attributes)


class _Gauge(_Instrument):
    set = _Instrument._keep


class _Meter:
    def create_histogram(self, name, unit="", description="", *, explicit_bucket_boundaries_advisory=None):
        assert explicit_bucket_boundaries_advisory == sorted(explicit_bucket_boundaries_advisory)
        return _Histogram(name, unit)

    def create_counter(self, name, unit="", description=""):
        return _Counter(name, unit)

    def create_gauge(self, name, unit="", description=""):
        return _Gauge(name, unit)


def get_meter(name):
    return _Meter()
