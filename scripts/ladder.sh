#!/usr/bin/env bash
# The ladder's last rung in one command (docs/training.md): whole games with practice of every skill, from an agent that
# explores, then its evaluations and its weights. Resumes: run it again with the same OUT for more minutes.
#
#   scripts/ladder.sh START DATA OUT MINUTES [further flags of `scrubjay train cache`]
#
# START: a run or weights; or - to learn to explore first, for another EXPLORE minutes (8) with EXPLORE_FLAGS. DATA: a folder
# with spots/ and placements/, such as the one in data/skills.tar.gz.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,8p' "$0"; exit 2; }
start=$1 data=$2 out=$3 minutes=$4
shift 4
device=${DEVICE:-cuda}
scrubjay() { "${PYTHON:-python3}" -m scrubjay "$@"; }
mkdir -p "$out"

if [ "$start" = - ]; then
  start=$out/explore
  [ -e "$start/run.json" ] || scrubjay train explore --validation-games 0 --checkpoint-interval 50 --overlap \
    --device "$device" --minutes "${EXPLORE:-8}" --out "$start" ${EXPLORE_FLAGS:-}
fi

if [ -e "$out/run/run.json" ]; then
  scrubjay train --resume "$out/run" --minutes "$minutes"
else
  # Rehearsal keeps the skills; few games are demonstrated, since imitation of a hand's path is what OM learns most from.
  scrubjay train cache --start "$start" --seek-like-explore --practice 0.06 0.79 0.07 --demonstration-share 0.5 \
    --objective.exploring 0.2 --learning-rate-schedule adaptive --overlap \
    --placements "$data/placements" --spots "$data/spots" --milestones 0 --validation-games 0 \
    --checkpoint-interval 100 --device "$device" --minutes "$minutes" --out "$out/run" "$@"
fi

evaluate() {  # TASK GAMES_A_ROOM [flags]
  scrubjay evaluate "$out/run" --task "$1" --games "$2" --device "$device" "${@:3}" | tee "$out/$1.jsonl"
}
evaluate explore 5
evaluate manipulate 40 --placements "$data/placements"
evaluate seek 10 --spots "$data/spots"
evaluate cache 8
