//! JSON text with line ends and indentation, and nothing else changed: numbers keep every digit, which values would not.

/// Indents a valid JSON text by two blanks a level.
pub(super) fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                if characters.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::indented;

    #[test]
    fn it_looks_as_serde_would_make_it() {
        let value = json!({"a": [1, {"b": []}, "x{,}\\\"[", {}], "c": null, "d": [[]], "e": "é\n"});
        assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(indented("[ ]"), "[]");
    }

    #[test]
    fn numbers_keep_every_digit() {
        assert_eq!(
            indented("[1000000000000000000000000000000,0.10]"),
            "[\n  1000000000000000000000000000000,\n  0.10\n]"
        );
    }
}
