#!/bin/sh
# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

# Epilog of Slurm: removes what prolog.sh wrote. It always succeeds, because an Epilog that fails
# drains the node.

PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
dir=${OTELCOL_GPU_JOBS:-/run/otelcol-gpu-jobs}

case $SLURM_JOB_ID in
'' | *[!0-9]*) ;;
*) rm -f "$dir/$SLURM_JOB_ID.json" "$dir/names/$SLURM_JOB_ID" >/dev/null 2>&1 ;;
esac
exit 0
