//! What a record says, and how it is written: one line of JSON.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The hash of a line, in hexadecimal digits.
pub type Hash = String;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number. The first one ever has 0.
    pub n: u64,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
    /// The hash of the line before; of zeros for the first one.
    pub prev: Hash,
    /// What happened.
    #[serde(flatten)]
    pub kind: Kind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// The log begins, or goes on with a key that no earlier record names.
    Begin {
        /// The public key that signs the next checkpoint.
        key: String,
        /// Why an earlier key does not sign it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// The rules decided about a call.
    Decision(Box<DecisionRecord>),
    /// A mode was set, or ended.
    Mode(ModeSet),
    /// Everything up to here is signed.
    Checkpoint {
        /// The public key that signs the next one.
        next: String,
        /// By the key that the last checkpoint named.
        signature: String,
    },
    /// Older records are not kept any longer.
    Pruned {
        /// The number of the first record that is kept.
        first: u64,
        /// The hash of the record before that one.
        before: Hash,
    },
    /// What is in the files is not what was written last; the log goes on in a new file.
    Resumed {
        /// What was found.
        why: String,
    },
}

/// A decision about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// `allowed`, `denied`, `approved` or `not_approved`.
    pub decision: String,
    /// The call's id.
    pub call: String,
    /// The tool's full name.
    pub tool: String,
    /// The version of its file, the beginning of its hash.
    pub version: String,
    /// The digest of the arguments, so that a call can be compared with what is known of it.
    pub arguments: String,
    /// The rules that decided, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<DecidedRule>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_rules: usize,
    /// What besides rules says why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The mode in force.
    pub mode: String,
    /// Who approved or denied it, and for how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The session, as `hostler status` numbers it.
    pub session: u64,
    /// The client's name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The client's tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The call's span, or its caller's, as `traceparent` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Which attempt it is; 1 for the first.
    pub attempt: u32,
    /// The strongest configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
}

/// A rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedRule {
    /// Its key.
    pub rule: String,
    /// What set it.
    pub origin: String,
    /// What it means for the call.
    pub reason: String,
}

/// A mode that was set, or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// The mode; none where the one of the configuration counts again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What changed it.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it ends by itself, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// For which `hostler.toml` it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts_for: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The hash before the first record.
pub fn no_hash() -> Hash {
    "0".repeat(64)
}

/// The hash of a line, without its end.
pub fn hash_of(line: &[u8]) -> Hash {
    data_encoding::HEXLOWER.encode(&Sha256::digest(line))
}

/// What a checkpoint signs. It says what the bytes are for, so that the key signs nothing else.
pub fn signed(n: u64, at_ms: u64, prev: &str, next: &str) -> Vec<u8> {
    format!("hostler audit checkpoint\n{n}\n{at_ms}\n{prev}\n{next}\n").into_bytes()
}
