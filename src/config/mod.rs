//! `hostler.toml`: typed settings whose every value knows where it came from.

pub mod origin;
pub mod section;
pub mod tool;
pub mod value;
