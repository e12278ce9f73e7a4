#!/bin/sh
# Runs the fuzz targets of fuzz/ with the stable compiler: tests/fuzz.sh SECONDS [TARGET ...]
#
# cargo-fuzz needs a nightly compiler for its sanitizers. The fuzzed code has no unsafe, so libFuzzer with
# coverage alone is enough, and the stable compiler can build it. Inputs that fail stay in fuzz/artifacts/TARGET.
set -eu
cd "$(dirname "$0")/../fuzz"
seconds=${1:?usage: tests/fuzz.sh SECONDS [TARGET ...]}
shift
all=$(sed -n 's/^path = "targets\/\(.*\)\.rs"$/\1/p' Cargo.toml)
targets=${*:-$all}
for target in $targets; do
    echo "$all" | grep -qx -- "$target" || {
        echo "fuzz: there is no target $target; the targets are $(echo "$all" | tr '\n' ' ')" >&2
        exit 2
    }
done

# the flags of `cargo fuzz build --sanitizer none`
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Ccodegen-units=1 --cfg fuzzing"
export RUSTFLAGS
host=$(rustc -vV | sed -n 's/^host: //p')
cargo build --release --locked --quiet --target "$host"

for target in $targets; do
    mkdir -p "corpus/$target" "artifacts/$target"
    log=artifacts/$target/log
    if "target/$host/release/$target" -max_total_time="$seconds" -max_len=4096 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" >"$log" 2>&1; then
        echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, nothing found"
    else
        tail -n 40 "$log" >&2
        echo "fuzz: $target: found something; the input is in fuzz/artifacts/$target, the end of the log above" >&2
        exit 1
    fi
done
