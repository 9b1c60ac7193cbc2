#!/usr/bin/env bash
# Trains on one to four nodes under Slurm: sbatch examples/slurm_train.sh cache --start out/skills --out /shared/runs/cache
#
# Every argument is one of `scrubjay train`. --out must be on a file system that all nodes share. The job is queued again
# when it is preempted or its time is up, and continues from its newest checkpoint.
#SBATCH --job-name=scrubjay
#SBATCH --nodes=1-4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=128
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=scrubjay-%j.log
# Two minutes before the end the batch script alone (B:) is told.
#SBATCH --signal=B:TERM@120
set -euo pipefail

if [ "$#" -eq 0 ]; then
    echo "usage: sbatch $0 PRESET --out FOLDER [flags of scrubjay train]" >&2
    exit 2
fi

# The first node hosts the rendezvous. The job's number makes a port that other jobs on that node do not have.
first_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))

told=0
forward() {
    told=1
    # srun passes the signal to torchrun on every node, and torchrun to its processes, which write a checkpoint.
    kill -TERM "$job" 2>/dev/null || true
}
trap forward TERM

# One core for each process's own work: games' physics has processes of its own.
export OMP_NUM_THREADS=1
# Else a node that joins later is never told the address of the others (torch 2.13).
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
# One torchrun per node. --kill-on-bad-exit=0: the others go on without a node that failed.
srun --kill-on-bad-exit=0 torchrun \
    --nnodes "1:$SLURM_JOB_NUM_NODES" \
    --nproc-per-node "${SLURM_GPUS_ON_NODE:-8}" \
    --max-restarts 100 \
    --shutdown-timeout 90 \
    --rdzv-backend c10d \
    --rdzv-endpoint "$first_node:$port" \
    --rdzv-id "$SLURM_JOB_ID" \
    -m scrubjay train "$@" --device cuda &
job=$!

# A signal interrupts wait: it is called again until srun has ended.
status=0
wait "$job" || status=$?
while kill -0 "$job" 2>/dev/null; do
    wait "$job" || status=$?
done

if [ "$told" -eq 1 ]; then
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
fi
exit "$status"
