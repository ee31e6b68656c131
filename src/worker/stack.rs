//! Where a stuck worker is: the stack that its interpreter prints on standard error when it is asked.

use std::path::Path;

/// A frame of Python code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The source file.
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// The function.
    pub function: String,
}

/// The frames of the main thread, innermost first, as the interpreter printed them.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    frames: Vec<Frame>,
    in_dump: bool,
}

impl Stack {
    /// Looks at a line of standard error. Returns true when it belonged to a stack and is no output of the tool.
    pub fn take_line(&mut self, line: &str) -> bool {
        let begins = line.ends_with("(most recent call first):")
            && (line.starts_with("Thread 0x") || line.starts_with("Current thread 0x"));
        if begins {
            // The main thread, on which calls run, is printed last: each thread's frames replace those before.
            self.in_dump = true;
            self.frames.clear();
            return true;
        }
        if !self.in_dump {
            return false;
        }
        if let Some(frame) = parse_frame(line) {
            self.frames.push(frame);
            return true;
        }
        // Empty lines stand between threads; anything else is the tool's again.
        self.in_dump = line.trim().is_empty() || line.trim() == "...";
        self.in_dump
    }

    /// Whether the last line belonged to a stack, so that the next one may too.
    pub fn is_open(&self) -> bool {
        self.in_dump
    }

    /// Forgets what an earlier stop left.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.in_dump = false;
    }

    /// `sleeper.py:7 in nap (inside http/client.py:1395)`: the tool's own innermost line, and where that had gone.
    pub fn place(&self, tool_file: &Path) -> Option<String> {
        let innermost = self.frames.first()?;
        let tool = tool_file.to_string_lossy();
        let own = self.frames.iter().find(|frame| frame.file == tool);
        let name = |frame: &Frame| format!("{}:{}", short(&frame.file), frame.line);
        match own {
            Some(own) if own == innermost => Some(format!("{} in {}", name(own), own.function)),
            Some(own) => Some(format!("{} in {} (inside {})", name(own), own.function, name(innermost))),
            None => Some(format!("{} in {}", name(innermost), innermost.function)),
        }
    }

    /// The frames as Python would print them, outermost first, from the tool's first line on: what is outside of it is
    /// the shim's.
    pub fn listing(&self, tool_file: &Path) -> Option<String> {
        let tool = tool_file.to_string_lossy();
        let own = self.frames.iter().rev().skip_while(|frame| frame.file != tool);
        let lines: Vec<String> =
            own.map(|frame| format!("  File \"{}\", line {}, in {}", frame.file, frame.line, frame.function)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Whether a line that begins with these bytes may be the first of a stack.
pub fn may_begin_a_stack(beginning: &[u8]) -> bool {
    let shared = |first: &str| first.bytes().zip(beginning).all(|(wanted, byte)| wanted == *byte);
    !beginning.is_empty() && (shared("Thread 0x") || shared("Current thread 0x"))
}

/// `  File "/usr/lib/python3.11/http/client.py", line 1395 in getresponse`
fn parse_frame(line: &str) -> Option<Frame> {
    let rest = line.strip_prefix("  File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (number, function) = rest.split_once(" in ")?;
    Some(Frame { file: file.to_owned(), line: number.parse().ok()?, function: function.to_owned() })
}

/// A library's path without the place it is installed in.
fn short(file: &str) -> &str {
    let after = |marker: &str| file.rfind(marker).map(|at| &file[at + marker.len()..]);
    let library = after("/site-packages/").or_else(|| {
        let rest = after("/lib/python3")?;
        rest.split_once('/').map(|(_, path)| path)
    });
    library.unwrap_or_else(|| file.rsplit('/').next().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = r#"Thread 0x00007f1 (most recent call first):
  File "/t/other.py", line 3 in helper

Current thread 0x00007f2 (most recent call first):
  File "/usr/lib/python3.11/http/client.py", line 1395 in getresponse
  File "/t/slow.py", line 7 in fetch
  File "/cache/shims/ab/hostler_worker/loop.py", line 80 in run
"#;

    #[test]
    fn the_place_names_the_authors_line_and_where_that_had_gone() {
        let mut stack = Stack::default();
        for line in DUMP.lines() {
            assert!(stack.take_line(line), "{line}");
        }
        assert!(!stack.take_line("and then the tool spoke"));
        let place = stack.place(Path::new("/t/slow.py")).unwrap();
        assert_eq!(place, "slow.py:7 in fetch (inside http/client.py:1395)");
        assert_eq!(stack.listing(Path::new("/t/slow.py")).unwrap().lines().count(), 2);
    }

    #[test]
    fn ordinary_output_is_left_alone() {
        let mut stack = Stack::default();
        assert!(!stack.take_line("  File \"x.py\", line 1 in f"));
        assert_eq!(stack.place(Path::new("x.py")), None);
    }
}
