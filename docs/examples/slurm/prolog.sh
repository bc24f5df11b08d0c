#!/bin/sh
# Copyright The otelcol-gpu Authors
# SPDX-License-Identifier: Apache-2.0

# Prolog of Slurm: writes which GPUs of this node a job has, for slurm_allocation. It calls no
# command of Slurm and always succeeds, because a Prolog that fails drains the node. README.md.

PATH=/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
dir=${OTELCOL_GPU_JOBS:-/run/otelcol-gpu-jobs}

# number prints $1 if it is one, else 0.
number() {
	case $1 in
	'' | *[!0-9]*) printf 0 ;;
	*) printf %s "$1" ;;
	esac
}

# text prints $1 as it stands between the quotes of JSON. Control characters become spaces.
text() {
	case $1 in
	*[\"\\[:cntrl:]]*) printf %s "$1" | tr '\001-\037\177' ' ' | sed 's/[\\"]/\\&/g' ;;
	*) printf %s "$1" ;;
	esac
}

write() {
	umask 022
	mkdir -p "$dir/names" || return
	job=$SLURM_JOB_ID
	file=$dir/$job.json
	# A former run of the job may have left its files.
	rm -f "$file" "$dir/names/$job"
	[ -n "$SLURM_JOB_GPUS" ] || return

	comment=$SLURM_JOB_COMMENT
	[ "${#comment}" -le 1024 ] || comment=
	{
		printf '{"v":1,"job":%s,"sluid":"%s","uid":%s,"user":"%s","account":"%s","partition":"%s","qos":"%s"' \
			"$job" "$(text "$SLURM_JOB_SLUID")" "$(number "$SLURM_JOB_UID")" "$(text "$SLURM_JOB_USER")" \
			"$(text "$SLURM_JOB_ACCOUNT")" "$(text "$SLURM_JOB_PARTITION")" "$(text "$SLURM_JOB_QOS")"
		printf ',"cluster":"%s","restarts":%s,"comment":"%s","gpus":"%s","visible":"%s"}\n' \
			"$(text "$SLURM_CLUSTER_NAME")" "$(number "${SLURM_JOB_RESTART_COUNT:-$SLURM_RESTART_COUNT}")" "$(text "$comment")" \
			"$(text "$SLURM_JOB_GPUS")" "$(text "${CUDA_VISIBLE_DEVICES:-$ROCR_VISIBLE_DEVICES}")"
	} >"$dir/.$job.$$" && mv -f "$dir/.$job.$$" "$file" || {
		rm -f "$dir/.$job.$$"
		return
	}

	# Only the job's user can write its name: taskprolog.sh.
	case $SLURM_JOB_UID in
	'' | *[!0-9]*) ;;
	*) : >"$dir/names/$job" && chown "$SLURM_JOB_UID" "$dir/names/$job" ;;
	esac
}

case $SLURM_JOB_ID in
'' | *[!0-9]*) ;;
*) write >/dev/null 2>&1 ;;
esac
exit 0
