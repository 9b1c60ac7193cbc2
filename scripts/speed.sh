#!/usr/bin/env bash
# Training speed with the presets (results/learning.md): all stages with 960 games, then how it grows with the number of games. What has been
# measured is not measured again, so that a run that was cut off is simply run again.
#
#   scripts/speed.sh AGENT SPOTS OUT
#
# AGENT: who plays and learns, such as scrubjay-paper. SPOTS: hiding spots of the train kitchens and living rooms, such as those in
# data/skills.tar.gz. OUT/*.jsonl have a line for each number of games, OUT/logs what was printed meanwhile. Environment: PYTHON, DEVICE
# (cuda), UPDATES (3), ROOMS (40; E&M has twice as many), COPIES (24; E&M has half), GROWTH ("3 6 12", games per room).
set -uo pipefail
[ $# -eq 3 ] || { sed -n '2,10p' "$0"; exit 2; }
agent=$1 spots=$2 out=$3 logs=$3/logs
rooms=${ROOMS:-40} copies=${COPIES:-24}
. "$(dirname "$0")/steps.sh"
mkdir -p "$logs"

bench() {  # bench NAME COPIES [flags of `scrubjay bench learning`]: COPIES are measured in turn
  local name=$1 copies=$2
  shift 2
  [ -e "$out/$name.jsonl" ] && return
  "${PYTHON:-python3}" -m scrubjay bench learning --numbers preset --overlap --updates "${UPDATES:-3}" --start "$agent" --device "${DEVICE:-cuda}" \
    --copies $copies "$@" > "$out/$name.part" && mv "$out/$name.part" "$out/$name.jsonl"
}

kitchens_and_living_rooms=(--scenes train:kitchen train:living_room --rooms "$rooms")
seek=(--preset seek --spots "$spots" "${kitchens_and_living_rooms[@]}")
explore=(--preset explore --rooms $((2 * rooms)))
whole_games=(--preset cache "${kitchens_and_living_rooms[@]}")
step seek bench seek "$copies" "${seek[@]}"
step explore bench explore $((copies / 2)) "${explore[@]}"
step whole_games bench whole_games "$copies" "${whole_games[@]}"
step manipulate bench manipulate "$copies" --preset manipulate "${kitchens_and_living_rooms[@]}"
step whole_games_growth bench whole_games_growth "${GROWTH:-3 6 12}" "${whole_games[@]}"
step explore_growth bench explore_growth "${GROWTH:-3 6 12}" "${explore[@]}"
cat "$logs/times.txt"
