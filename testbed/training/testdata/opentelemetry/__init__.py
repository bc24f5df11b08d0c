# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0
