//! The stack that a stuck worker's interpreter prints on stderr on request.

use std::path::Path;

/// A frame of Python code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The function.
    pub function: String,
}

/// The frames of each thread, innermost first, in printed order.
#[derive(Debug, Clone, Default)]
pub struct Stack {
    threads: Vec<Vec<Frame>>,
    in_dump: bool,
}

/// The first line of a single thread's stack.
const ALONE: &str = "Stack (most recent call first):";

/// More threads than calls can run; a tool may print endless lookalikes.
const MOST_THREADS: usize = 128;

impl Stack {
    /// Consumes a line of stderr. Returns whether it belongs to a stack and is not output of the tool.
    pub fn take_line(&mut self, line: &str) -> bool {
        let begins = line.ends_with("(most recent call first):")
            && ["Thread 0x", "Current thread 0x", ALONE].iter().any(|first| line.starts_with(first));
        if begins {
            self.in_dump = true;
            if self.threads.len() == MOST_THREADS {
                self.threads.remove(0);
            }
            self.threads.push(Vec::new());
            return true;
        }
        if !self.in_dump {
            return false;
        }
        if let (Some(frame), Some(frames)) = (parse_frame(line), self.threads.last_mut()) {
            frames.push(frame);
            return true;
        }
        // Empty lines separate threads; any other line is output of the tool.
        self.in_dump = line.trim().is_empty() || line.trim() == "...";
        self.in_dump
    }

    /// Whether the last line belonged to a stack, so that the next one may too.
    pub fn is_open(&self) -> bool {
        self.in_dump
    }

    /// Removes the frames of an earlier request.
    pub fn clear(&mut self) {
        self.threads.clear();
        self.in_dump = false;
    }

    /// The stack of an exception, from the worker's traceback.
    pub fn of_traceback(text: &str) -> Self {
        // The last part is the exception itself; earlier parts are its causes.
        let last = text.rsplit_once("Traceback (most recent call last):").map_or(text, |(_, last)| last);
        let mut frames: Vec<Frame> =
            last.lines().filter_map(|line| parse_frame(&line.replacen(", in ", " in ", 1))).collect();
        frames.reverse();
        Self { threads: vec![frames], in_dump: false }
    }

    /// The only thread that runs this function, if several calls run. Two calls of one function are indistinguishable,
    /// and a waiting async function is on no thread.
    #[must_use]
    pub fn running(&self, tool_file: &Path, function: &str) -> Self {
        let tool = tool_file.to_string_lossy();
        let runs = |frames: &&Vec<Frame>| frames.iter().any(|frame| frame.function == function && frame.file == tool);
        let mut found = self.threads.iter().filter(runs);
        let only = found.next().filter(|_| found.next().is_none());
        Self { threads: only.cloned().into_iter().collect(), in_dump: false }
    }

    /// Whether a process printed it while exiting by itself.
    pub fn tells_exit(&self) -> bool {
        self.threads.last().and_then(|frames| frames.first()).is_some_and(is_of_exit)
    }

    /// The main thread, which runs single calls, is printed last.
    fn frames(&self) -> &[Frame] {
        let frames = self.threads.last().map_or(&[][..], Vec::as_slice);
        match frames.split_first() {
            Some((first, before)) if is_of_exit(first) => before,
            _ => frames,
        }
    }

    /// Whether it contains the tool's own code.
    pub fn enters(&self, tool_file: &Path) -> bool {
        let tool = tool_file.to_string_lossy();
        self.frames().iter().any(|frame| frame.file == tool)
    }

    /// `sleeper.py:7 in nap (inside http/client.py:1395)`: the tool's innermost line, and the innermost line of all.
    pub fn place(&self, tool_file: &Path) -> Option<String> {
        let innermost = self.frames().first()?;
        let tool = tool_file.to_string_lossy();
        let own = self.frames().iter().find(|frame| frame.file == tool);
        let name = |frame: &Frame| format!("{}:{}", short(&frame.file), frame.line);
        match own {
            Some(own) if own == innermost => Some(format!("{} in {}", name(own), own.function)),
            Some(own) => Some(format!("{} in {} (inside {})", name(own), own.function, name(innermost))),
            None => Some(format!("{} in {}", name(innermost), innermost.function)),
        }
    }

    /// The line at the top level of the tool's file that runs a server or an event loop.
    pub fn line_that_serves(&self, tool_file: &Path) -> Option<u32> {
        let tool = tool_file.to_string_lossy();
        let waits = |frame: &Frame| {
            let is_loop = ["/asyncio/", "/uvicorn/", "/hypercorn/", "/gunicorn/", "/werkzeug/", "/trio/", "/anyio/"];
            matches!(frame.function.as_str(), "run_forever" | "serve_forever")
                || is_loop.iter().any(|part| frame.file.contains(part))
        };
        let mut inside = self.frames().iter().take_while(|frame| frame.file != tool);
        let top = self.frames().iter().find(|frame| frame.file == tool && frame.function == "<module>")?;
        inside.any(waits).then_some(top.line)
    }

    /// The frames in Python's order, outermost first, from the tool's first frame on: the frames outside belong to the
    /// shim.
    pub fn listing(&self, tool_file: &Path) -> Option<String> {
        let tool = tool_file.to_string_lossy();
        let own = self.frames().iter().rev().skip_while(|frame| frame.file != tool);
        let lines: Vec<String> =
            own.map(|frame| format!("  File \"{}\", line {}, in {}", frame.file, frame.line, frame.function)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Whether a line with this beginning may be the first of a stack.
pub fn may_begin_a_stack(beginning: &[u8]) -> bool {
    let shared = |first: &str| first.bytes().zip(beginning).all(|(wanted, byte)| wanted == *byte);
    !beginning.is_empty() && (shared("Thread 0x") || shared("Current thread 0x") || shared(ALONE))
}

/// `  File "/usr/lib/python3.11/http/client.py", line 1395 in getresponse`
fn parse_frame(line: &str) -> Option<Frame> {
    let rest = line.strip_prefix("  File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (number, function) = rest.split_once(" in ")?;
    Some(Frame { file: file.to_owned(), line: number.parse().ok()?, function: function.to_owned() })
}

/// The shim's replacement of `os._exit`.
fn is_of_exit(frame: &Frame) -> bool {
    frame.function == "_exit_telling_where" && frame.file.ends_with("/hostler_worker/interrupt.py")
}

/// A library's path without its installation folder.
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
    fn the_place_names_the_tools_line_and_the_innermost_line() {
        let mut stack = Stack::default();
        for line in DUMP.lines() {
            assert!(stack.take_line(line), "{line}");
        }
        assert!(!stack.take_line("and then the tool spoke"));
        let place = stack.place(Path::new("/t/slow.py")).unwrap();
        assert_eq!(place, "slow.py:7 in fetch (inside http/client.py:1395)");
        assert_eq!(stack.listing(Path::new("/t/slow.py")).unwrap().lines().count(), 2);
    }

    const SEVERAL: &str = r#"Thread 0x00007f1 (most recent call first):
  File "/t/slow.py", line 9 in nap

Thread 0x00007f3 (most recent call first):
  File "/t/slow.py", line 7 in fetch
  File "/cache/shims/ab/hostler_worker/several.py", line 80 in _plain

Thread 0x00007f4 (most recent call first):
  File "/t/slow.py", line 8 in nap

Current thread 0x00007f2 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 468 in select
"#;

    #[test]
    fn each_of_several_calls_has_the_place_of_its_function() {
        let mut stack = Stack::default();
        assert!(SEVERAL.lines().all(|line| stack.take_line(line)));
        let place = |function| stack.running(Path::new("/t/slow.py"), function).place(Path::new("/t/slow.py"));
        assert_eq!(place("fetch").as_deref(), Some("slow.py:7 in fetch"));
        assert_eq!(place("nap"), None, "it is one of two");
        assert_eq!(place("waits_on_the_loop"), None);
    }

    #[test]
    fn a_traceback_has_the_place_of_its_last_exception() {
        let text = r#"Traceback (most recent call last):
  File "/t/slow.py", line 3, in first
    first()
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/t/slow.py", line 7, in fetch
    await asyncio.sleep(60)
  File "/usr/lib/python3.11/asyncio/tasks.py", line 639, in sleep
    return await future
asyncio.exceptions.CancelledError
"#;
        let place = Stack::of_traceback(text).place(Path::new("/t/slow.py")).unwrap();
        assert_eq!(place, "slow.py:7 in fetch (inside asyncio/tasks.py:639)");
    }

    #[test]
    fn ordinary_output_is_not_consumed() {
        let mut stack = Stack::default();
        assert!(!stack.take_line("  File \"x.py\", line 1 in f"));
        assert_eq!(stack.place(Path::new("x.py")), None);
    }
}
