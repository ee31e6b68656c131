# The everyday commands. `just` alone lists them.

default:
    @just --list

# The program, as it is shipped
build:
    cargo build --release

# Everything that is tested, also end to end
test:
    scripts/test

# The budgets: a table of figures with their targets, e.g. `just bench --row warm`
bench *options:
    cargo bench --features bench --bench budgets -- {{options}}

# Calls in flight while workers, files and hostler itself are struck at random, e.g. `just storm 40 7`, `just storm --shared 40`
storm *rounds:
    scripts/storm {{rounds}}

# Write the galleries of messages anew; read the difference
gallery:
    scripts/gallery

# What continuous integration refuses
lint:
    cargo fmt --all --check
    cargo clippy --all-targets --all-features -- -D warnings

# The main job on the examples: one cold call, one warm call
demo:
    scripts/demo
