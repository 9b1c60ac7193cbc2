#!/usr/bin/env bash
# The dynamic study at the paper's size (docs/experiments.md), in two parts. Steps continue where they stopped, so that a part that was cut
# off is simply run again; each step's log and seconds are in the folder's logs.
#
#   scripts/dynamic_study.sh data D SPOTS              contained, tracking, space: needs no agent, and may run beside training
#   scripts/dynamic_study.sh agent AGENT D OUT         rotation, features, probes, page; OUT/results.tar.gz has all but features
#
# SPOTS: hiding spots of train and test kitchens and living rooms, such as those in data/skills.tar.gz. Environment: PYTHON, DEVICE (cuda),
# WORKERS (8), ENCODERS (efficientnet-lite0).
set -uo pipefail
[ $# -ge 3 ] || { sed -n '2,9p' "$0"; exit 2; }
device=${DEVICE:-cuda} workers=${WORKERS:-8} encoders=${ENCODERS-efficientnet-lite0}
. "$(dirname "$0")/steps.sh"

case $1 in
data)
  data=$2 logs=$2/logs
  mkdir -p "$logs" "$data/spots" && cp -n "$3"/*.json "$data/spots/"
  for one in space tracking contained; do
    step $one study data $one --device "$device" --workers "$workers" --out "$data/$one" || exit 1
  done
  ;;
agent)
  agent=$2 data=$3 out=$4 logs=$4/logs
  mkdir -p "$logs"
  dynamic=(study dynamic --agents "$agent" ${encoders:+--encoders $encoders} --data "$data" --device "$device" --out "$out")
  # Seekers keep processors busy, features the GPU: both at once.
  step rotation study data rotation --agent "$agent" --spots "$data/spots" --spots-per-object 4 --steps 200 --device "$device" \
    --workers "$workers" --out "$data/rotation" &
  step features "${dynamic[@]}" --experiments contained tracking space --features-only --workers 3
  wait
  # What works is kept: if one experiment fails, the others are studied without it.
  step study "${dynamic[@]}" --experiments contained tracking rotation space ||
    for one in contained tracking rotation space; do step "$one" "${dynamic[@]}" --experiments $one; done
  # Predictions, and features' digests: tables and page can be made from these without the features, which are large.
  (cd "$out" && find . -type f ! -name results.tar.gz \( ! -path './features/*.npy' -o -name '*-odds-*' \) -print0) |
    tar czf "$out/results.tar.gz" -C "$out" --null -T -
  cat "$logs/times.txt"
  ;;
*)
  sed -n '2,9p' "$0"
  exit 2
  ;;
esac
