//! The Python side of a worker, embedded in this binary and written to the cache on first use.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

macro_rules! carried {
    ($path:literal) => {
        ($path, include_str!(concat!("../../worker-shims/python/", $path)))
    };
}

/// Every file of the shim: its relative path and its text.
const FILES: &[(&str, &str)] = &[
    carried!("__main__.py"),
    carried!("hostler/__init__.py"),
    carried!("hostler_worker/__init__.py"),
    carried!("hostler_worker/calls.py"),
    carried!("hostler_worker/children.py"),
    carried!("hostler_worker/containers.py"),
    carried!("hostler_worker/convert.py"),
    carried!("hostler_worker/cuts.py"),
    carried!("hostler_worker/cutting.py"),
    carried!("hostler_worker/describe.py"),
    carried!("hostler_worker/described_classes.py"),
    carried!("hostler_worker/described_models.py"),
    carried!("hostler_worker/encode.py"),
    carried!("hostler_worker/faults.py"),
    carried!("hostler_worker/files.py"),
    carried!("hostler_worker/forms.py"),
    carried!("hostler_worker/frameworks/__init__.py"),
    carried!("hostler_worker/frameworks/behind.py"),
    carried!("hostler_worker/frameworks/call.py"),
    carried!("hostler_worker/frameworks/calling.py"),
    carried!("hostler_worker/frameworks/claude.py"),
    carried!("hostler_worker/frameworks/command_arguments.py"),
    carried!("hostler_worker/frameworks/commands.py"),
    carried!("hostler_worker/frameworks/dependencies.py"),
    carried!("hostler_worker/frameworks/giving.py"),
    carried!("hostler_worker/frameworks/injected.py"),
    carried!("hostler_worker/frameworks/beside.py"),
    carried!("hostler_worker/frameworks/inner.py"),
    carried!("hostler_worker/frameworks/langchain.py"),
    carried!("hostler_worker/frameworks/low_level.py"),
    carried!("hostler_worker/frameworks/mcp.py"),
    carried!("hostler_worker/frameworks/methods.py"),
    carried!("hostler_worker/frameworks/open_webui.py"),
    carried!("hostler_worker/frameworks/openai_agents.py"),
    carried!("hostler_worker/frameworks/others.py"),
    carried!("hostler_worker/frameworks/results.py"),
    carried!("hostler_worker/frameworks/runs.py"),
    carried!("hostler_worker/frameworks/strands.py"),
    carried!("hostler_worker/guarded.py"),
    carried!("hostler_worker/host.py"),
    carried!("hostler_worker/interrupt.py"),
    carried!("hostler_worker/limits.py"),
    carried!("hostler_worker/loading.py"),
    carried!("hostler_worker/loop.py"),
    carried!("hostler_worker/making.py"),
    carried!("hostler_worker/models.py"),
    carried!("hostler_worker/notes.py"),
    carried!("hostler_worker/output.py"),
    carried!("hostler_worker/package.py"),
    carried!("hostler_worker/printed.py"),
    carried!("hostler_worker/program.py"),
    carried!("hostler_worker/questions.py"),
    carried!("hostler_worker/running.py"),
    carried!("hostler_worker/scalars.py"),
    carried!("hostler_worker/separate.py"),
    carried!("hostler_worker/several.py"),
    carried!("hostler_worker/state.py"),
    carried!("hostler_worker/structured.py"),
    carried!("hostler_worker/threads.py"),
    carried!("hostler_worker/trace.py"),
    carried!("hostler_worker/types.py"),
    carried!("hostler_worker/wire.py"),
];

/// The folder of shims in the cache.
#[derive(Debug, Clone)]
pub struct Shims {
    folder: PathBuf,
}

impl Shims {
    /// Shims below a cache folder.
    pub fn in_cache(cache: &Path) -> Self {
        Self { folder: cache.join("shims") }
    }

    /// Their folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program of this binary's shim, written if needed. The folder is named by content and appears by one rename,
    /// so versions of hostler do not conflict and no half-written shim is used.
    pub fn lay_out(&self) -> io::Result<PathBuf> {
        let name = content_name();
        let home = self.folder.join(name);
        let program = home.join("__main__.py");
        if is_intact(&home) {
            return Ok(program);
        }
        // Left behind by a crash of the machine.
        let _ = std::fs::remove_dir_all(&home);
        let staging = self.folder.join(format!(".{name}.{}", std::process::id()));
        for (path, text) in FILES {
            let target = staging.join(path);
            std::fs::create_dir_all(target.parent().unwrap_or(&staging))?;
            std::fs::write(target, text)?;
        }
        match std::fs::rename(&staging, &home) {
            Ok(()) => Ok(program),
            // Another process wrote the same content first.
            Err(_) if is_intact(&home) => {
                let _ = std::fs::remove_dir_all(&staging);
                Ok(program)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether every file exists with its length; the folder's name covers the content.
fn is_intact(home: &Path) -> bool {
    let length = |path: &str| home.join(path).metadata().map(|data| data.len()).ok();
    FILES.iter().all(|(path, text)| length(path) == Some(text.len() as u64))
}

fn content_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(hash_files)
}

fn hash_files() -> String {
    let mut hash = Sha256::new();
    for (path, text) in FILES {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    format!("{:016x}", u64::from_be_bytes(digest[..8].try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_shim_is_written_again() {
        let cache = tempfile::tempdir().unwrap();
        let shims = Shims::in_cache(cache.path());
        let program = shims.lay_out().unwrap();
        std::fs::write(&program, "").unwrap();
        assert_eq!(shims.lay_out().unwrap(), program);
        assert!(std::fs::read_to_string(&program).unwrap().contains("main(wire"));
    }
}
