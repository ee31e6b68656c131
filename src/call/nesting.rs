//! JSON that is nested too deeply: the wording, and which argument it is in.

/// JSON readers stop at 127 levels; the envelope around an argument or a result takes some of them.
pub const TOO_DEEP: &str = "nested deeper than about 120 levels";

/// Whether parsing failed because of the depth.
pub fn is_too_deep(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("recursion limit")
}

/// The message for an argument that is nested too deeply.
pub fn deep_argument(name: &str) -> String {
    format!("`{name}` is {TOO_DEEP}; flatten it")
}

/// The keys that lead to the deepest value, outermost first, at most `most`.
pub fn keys_to_the_depth(json: &[u8], most: usize) -> Vec<String> {
    let mut keys = vec![String::new(); most];
    let (mut depth, mut deepest, mut begin, mut last) = (0_usize, 0_usize, None, 0..0);
    let (mut escaped, mut found) = (false, Vec::new());
    for (at, byte) in json.iter().enumerate() {
        match (begin, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(from), b'"') => (begin, last) = (None, from..at),
            (None, b'"') => begin = Some(at + 1),
            (None, b':') if (1..=most).contains(&depth) => {
                keys[depth - 1] = String::from_utf8_lossy(&json[last.clone()]).into_owned();
            }
            (None, b'{' | b'[') => {
                depth += 1;
                if depth > deepest {
                    deepest = depth;
                    found = keys[..most.min(depth - 1)].to_vec();
                }
            }
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_argument_that_is_too_deep() {
        let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
        let text =
            format!(r#"{{"id":{{"a":[1]}},"params":{{"m":{{}},"arguments":{{"y":[],"x\"":{deep},"z":[[1]]}}}}}}"#);
        assert_eq!(keys_to_the_depth(text.as_bytes(), 3), ["params", "arguments", "x\\\""]);
        assert_eq!(keys_to_the_depth(text.as_bytes(), 1), ["params"]);
        assert_eq!(keys_to_the_depth(b"[1]", 2), Vec::<String>::new());
        let error = serde_json::from_str::<serde_json::Value>(&text).unwrap_err();
        assert!(is_too_deep(&error) && !is_too_deep(&serde_json::from_str::<i32>("x").unwrap_err()));
    }
}
