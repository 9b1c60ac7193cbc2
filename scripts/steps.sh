# What the scripts of studies share: `study`, the command, and `step`, which logs one to $logs. Sourced.
export OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
study() { "${PYTHON:-python3}" -m scrubjay study "$@"; }
step() {  # step NAME COMMAND...: logs, and says how long it took
  local name=$1 start=$SECONDS rc
  shift
  "$@" >> "$logs/$name.log" 2>&1
  rc=$?
  echo "$name: exit $rc, $((SECONDS - start)) s" | tee -a "$logs/times.txt"
  return $rc
}
