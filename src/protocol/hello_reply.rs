//! The worker's answer to `hello`.

use serde::Deserialize;

use super::parse::whole;

/// The result of `hello`.
#[derive(Debug, Clone, Deserialize)]
pub struct HelloReply {
    /// The worker's protocol version.
    #[serde(deserialize_with = "whole")]
    pub protocol: u32,
    /// The worker's own process id, which differs from its launcher's.
    #[serde(deserialize_with = "whole")]
    pub pid: u32,
    /// Its optional capabilities.
    #[serde(default)]
    pub features: Vec<String>,
}

impl HelloReply {
    /// Whether it can run several calls at once.
    pub fn runs_several(&self) -> bool {
        self.can("concurrent")
    }

    /// Whether it checks its input on `SIGUSR1`.
    pub fn is_nudged(&self) -> bool {
        self.can("interrupt")
    }

    /// Whether it prints its stack on `SIGUSR2`.
    pub fn prints_stacks(&self) -> bool {
        self.can("stack")
    }

    /// Whether it ends a running call itself on `cancel`.
    pub fn cancels(&self) -> bool {
        self.can("cancel")
    }

    /// Whether it keeps something for each session.
    pub fn keeps_sessions(&self) -> bool {
        self.can("sessions")
    }

    fn can(&self, wanted: &str) -> bool {
        self.features.iter().any(|feature| feature == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_needs_the_capability() {
        let runs = |json| serde_json::from_str::<HelloReply>(json).unwrap().runs_several();
        assert!(runs(r#"{"protocol":1,"pid":7,"features":["cancel","concurrent"]}"#));
        assert!(!runs(r#"{"protocol":1,"pid":7,"features":["cancel"]}"#));
        assert!(!runs(r#"{"protocol":1,"pid":7}"#));
    }

    #[test]
    fn numbers_may_be_floats_and_must_be_whole() {
        let read = |json| serde_json::from_str::<HelloReply>(json);
        let hello = read(r#"{"protocol":1.0,"pid":77.0}"#).unwrap();
        assert_eq!((hello.protocol, hello.pid), (1, 77));
        for (json, part) in [
            (r#"{"protocol":1.5,"pid":7}"#, "expected a whole number in range, got 1.5"),
            (r#"{"protocol":1,"pid":1e12}"#, "expected a whole number in range"),
            (r#"{"protocol":"1","pid":7}"#, "invalid type: string"),
            (r#"{"pid":7}"#, "missing field `protocol`"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
