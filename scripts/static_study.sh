#!/usr/bin/env bash
# The static study at the paper's size (docs/experiments.md): images, then the probes of several encoders side by side, then one table.
# Steps continue where they stopped, so that a study that was cut off is simply run again; each step's log and seconds are in OUT/logs.
#
#   scripts/static_study.sh DATA OUT CONTROL ENCODER...
#
# DATA: images, made there if they are missing. CONTROL: the encoder that the others are compared with, one of them. Encoders: as
# `scrubjay study static --encoders` takes them, in relative paths, since tables name them as they are given; those joined by commas
# share a process. OUT/results.tar.gz has all tables, predictions and logs, and none of the features. Environment: PYTHON, DEVICE (cuda),
# SCALE (paper), WORKERS (8) that make images.
set -uo pipefail
[ $# -ge 4 ] || { sed -n '2,11p' "$0"; exit 2; }
data=$1 out=$2 control=$3 logs=$2/logs
shift 3
device=${DEVICE:-cuda} scale=${SCALE:-paper}
. "$(dirname "$0")/steps.sh"
mkdir -p "$logs"
step images study data static --scale "$scale" --device "$device" --workers "${WORKERS:-8}" --out "$data" || exit 1
parts=()
for encoders in "$@"; do
  part=$out/$(tr -c '[:alnum:]\n' - <<< "$encoders")
  parts+=("$part")
  step "$(basename "$part")" study static --encoders ${encoders//,/ } --control "$control" --scale "$scale" --data "$data" \
    --device "$device" --out "$part" &
done
wait
rm -rf "$out/merged"
step merge study merge --studies "${parts[@]}" --control "$control" --out "$out/merged"
(cd "$out" && find . -type f ! -name results.tar.gz ! -path '*/features/*' -print0) | tar czf "$out/results.tar.gz" -C "$out" --null -T -
cat "$logs/times.txt"
