#!/usr/bin/env bash
# The ladder's last rung in one command (docs/training.md): whole games with practice of every skill, then evaluations. Resumes: run
# it again with the same OUT for more minutes.
#
#   scripts/ladder.sh START DATA OUT MINUTES [further flags of `scrubjay train pretrain`]
#
# START: a run or weights, such as scrubjay-paper, the released agent; or - to begin with an untrained agent, which only practices
# in the first PRETRAINING updates (160). DATA: a folder with spots/ and placements/, such as the one in data/skills.tar.gz.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,9p' "$0"; exit 2; }
start=$1 data=$2 out=$3 minutes=$4
shift 4
device=${DEVICE:-cuda}
scrubjay() { "${PYTHON:-python3}" -m scrubjay "$@"; }
mkdir -p "$out"

if [ -e "$out/run/run.json" ]; then
  scrubjay train --resume "$out/run" --device "$device" --minutes "$minutes"
else
  begin=(--start "$start" --seek-like-explore)
  [ "$start" = - ] && begin=(--pretraining-updates "${PRETRAINING:-160}")
  # One episode in eight is a whole game, half of the steps.
  scrubjay train pretrain "${begin[@]}" --practice 0.08 0.66 0.14 --near-share 0.4 --demonstration-share 0.45 --hidden-share 0.3 --displaced-share 0.3 \
    --objective.exploring 1.0 --target-kl 0.04 --overlap --placements "$data/placements" --spots "$data/spots" --milestones 0 1000 2000 4000 8000 16000 \
    --validation-games 0 --checkpoint-interval 80 --device "$device" --minutes "$minutes" --out "$out/run" "$@"
fi

# Compiling takes longer than it saves in a few games.
export TORCH_COMPILE_DISABLE=1
rooms="validation:kitchen validation:living_room"
evaluate() {  # NAME TASK GAMES_A_ROOM [flags]
  scrubjay evaluate "$out/run" --task "$2" --games "$3" --device "$device" "${@:4}" | tee "$out/$1.jsonl"
}
evaluate explore explore 5
evaluate manipulate manipulate 40 --placements "$data/placements" --scenes $rooms
for difficulty in easy medium hard; do
  evaluate "seek-$difficulty" seek 10 --spots "$data/spots" --difficulties "$difficulty" --scenes $rooms
done
evaluate cache cache 8
