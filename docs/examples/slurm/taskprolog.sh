#!/bin/sh
# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

# TaskProlog of Slurm, which runs as the job's user before each task. It writes what Prolog does not
# know, the name of the job and the ids of its array, into the file that prolog.sh made for it: the
# first task writes. And it prints one line, with which Slurm sets OTEL_RESOURCE_ATTRIBUTES for the
# task: every SDK of OpenTelemetry then sends which job it is of. README.md.

PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
file=${OTELCOL_GPU_JOBS:-/run/otelcol-gpu-jobs}/names/$SLURM_JOB_ID

# encode prints $1 percent-encoded: all of it, if any character of it needs that.
encode() {
	case $1 in
	*[!A-Za-z0-9._~:/@-]*) printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g' ;;
	*) printf %s "$1" ;;
	esac
}

# attribute prints ",$1=$2", or nothing where $2 is empty or longer than any honest one.
attribute() {
	[ -z "$2" ] || [ "${#2}" -gt 1024 ] || printf ',%s=%s' "$1" "$(encode "$2")"
}

# kept prints what the user has set, each behind a comma, but for what is set here: a job that was
# submitted within another has the other's.
kept() {
	set -f
	IFS=,
	for item in $OTEL_RESOURCE_ATTRIBUTES; do
		key=${item%%=*}
		case ${key##* } in
		slurm.cluster.name | slurm.job.id | slurm.job.name | slurm.array.job_id | slurm.array.task_id) ;;
		*) [ -z "$item" ] || printf ,%s "$item" ;;
		esac
	done
}

case $SLURM_JOB_ID in
'' | *[!0-9]*) ;;
*)
	if [ -f "$file" ] && [ ! -s "$file" ] && [ -w "$file" ]; then
		printf '%s\n%s\n%s\n' "$(printf %s "$SLURM_JOB_NAME" | tr '\001-\037\177' ' ')" \
			"$SLURM_ARRAY_JOB_ID" "$SLURM_ARRAY_TASK_ID" >"$file"
	fi 2>/dev/null
	printf 'export OTEL_RESOURCE_ATTRIBUTES=slurm.job.id=%s%s%s%s%s%s\n' "$SLURM_JOB_ID" \
		"$(attribute slurm.cluster.name "$SLURM_CLUSTER_NAME")" "$(attribute slurm.job.name "$SLURM_JOB_NAME")" \
		"$(attribute slurm.array.job_id "$SLURM_ARRAY_JOB_ID")" "$(attribute slurm.array.task_id "$SLURM_ARRAY_TASK_ID")" \
		"$(kept 2>/dev/null | tr '\001-\037\177' ' ')" 2>/dev/null
	;;
esac
exit 0
