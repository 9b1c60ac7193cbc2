#!/usr/bin/env bash
# Rewrites the committed losses and R's answers to them: tests/study/reference.sh, from the repository's root.
set -euo pipefail
PYTHONPATH=src .venv/bin/python tests/study/synthetic.py
losses=$(mktemp --suffix .csv)
trap 'rm -f "$losses"' EXIT
gunzip --stdout tests/study/losses.csv.gz > "$losses"
mkdir -p tests/study/r
Rscript tests/study/glmm.R "$losses" ImageNet tests/study/r/identity
Rscript tests/study/glmm.R "$losses" ImageNet tests/study/r/log log
