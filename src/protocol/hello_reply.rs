//! What a worker says of itself when it is greeted.

use serde::Deserialize;

use super::parse::whole;

/// The result of `hello`.
#[derive(Debug, Clone, Deserialize)]
pub struct HelloReply {
    /// The version the worker speaks.
    #[serde(deserialize_with = "whole")]
    pub protocol: u32,
    /// The worker's own process id, which is not that of its launcher.
    #[serde(deserialize_with = "whole")]
    pub pid: u32,
    /// What it can do beside the least.
    #[serde(default)]
    pub features: Vec<String>,
}

impl HelloReply {
    /// Whether it may be asked to run several calls at once.
    pub fn runs_several(&self) -> bool {
        self.can("concurrent")
    }

    /// Whether it looks at its input when `SIGUSR1` comes.
    pub fn is_nudged(&self) -> bool {
        self.can("interrupt")
    }

    /// Whether it prints its stack when `SIGUSR2` comes.
    pub fn prints_stacks(&self) -> bool {
        self.can("stack")
    }

    /// Whether it ends a running call by itself when a `cancel` names it.
    pub fn cancels(&self) -> bool {
        self.can("cancel")
    }

    fn can(&self, wanted: &str) -> bool {
        self.features.iter().any(|feature| feature == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_runs_several_calls_only_if_it_says_so() {
        let runs = |json| serde_json::from_str::<HelloReply>(json).unwrap().runs_several();
        assert!(runs(r#"{"protocol":1,"pid":7,"features":["cancel","concurrent"]}"#));
        assert!(!runs(r#"{"protocol":1,"pid":7,"features":["cancel"]}"#));
        assert!(!runs(r#"{"protocol":1,"pid":7}"#));
    }

    #[test]
    fn its_numbers_may_be_floats_and_must_be_whole() {
        let read = |json| serde_json::from_str::<HelloReply>(json);
        let hello = read(r#"{"protocol":1.0,"pid":77.0}"#).unwrap();
        assert_eq!((hello.protocol, hello.pid), (1, 77));
        for (json, told) in [
            (r#"{"protocol":1.5,"pid":7}"#, "1.5 is no whole number that fits"),
            (r#"{"protocol":1,"pid":1e12}"#, "is no whole number that fits"),
            (r#"{"protocol":"1","pid":7}"#, "invalid type: string"),
            (r#"{"pid":7}"#, "missing field `protocol`"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
