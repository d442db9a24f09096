#!/bin/sh
# Runs bench/gpu_remote.ts on a machine that may have neither Deno nor a network. `--pack` gathers what is needed for that
# in .cache/remote first, on a machine that has both; carry it along with wasm/dist and wasm/backend-ops.
set -eu
cd "$(dirname "$0")/.."
packed=.cache/remote

if [ "${1-}" = --pack ]; then
  deno=$(deno eval 'console.log(Deno.execPath())')
  rm -rf "$packed"
  mkdir -p "$packed"
  gzip -c "$deno" > "$packed/deno.gz"
  DENO_DIR="$PWD/$packed/cache" deno cache -q mod.ts bench/gpu_remote.ts tests/gpu/ops.ts tests/gpu/worker.ts src/engine/worker.ts
  rm -rf "$packed/cache/gen" "$packed"/cache/*_cache_v*
  du -sh "$packed"
  exit
fi

if [ -d "$packed/cache" ]; then
  DENO_DIR="$PWD/$packed/cache"
  export DENO_DIR
fi
deno=deno
if ! command -v deno > /dev/null; then
  deno=$(mktemp -d)/deno
  gzip -dc "$packed/deno.gz" > "$deno"
  chmod +x "$deno"
fi
exec "$deno" run -A --no-check bench/gpu_remote.ts "$@"
