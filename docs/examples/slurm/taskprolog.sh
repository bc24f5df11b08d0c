#!/bin/sh
# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

# TaskProlog of Slurm, which runs as the job's user before each task: writes what Prolog does not
# know, the name of the job and the ids of its array, into the file that prolog.sh made for it. The
# first task writes. It prints nothing: Slurm reads what a TaskProlog prints.

file=${OTELCOL_GPU_JOBS:-/run/otelcol-gpu-jobs}/names/$SLURM_JOB_ID

case $SLURM_JOB_ID in
'' | *[!0-9]*) ;;
*)
	if [ -f "$file" ] && [ ! -s "$file" ] && [ -w "$file" ]; then
		printf '%s\n%s\n%s\n' "$(printf %s "$SLURM_JOB_NAME" | /usr/bin/tr '\001-\037\177' ' ')" \
			"$SLURM_ARRAY_JOB_ID" "$SLURM_ARRAY_TASK_ID" >"$file"
	fi 2>/dev/null
	;;
esac
exit 0
