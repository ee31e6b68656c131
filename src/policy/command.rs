//! Shell commands as words. What a shell would do that cannot be read off the text is not guessed: such a command is not judged.

use std::iter::Peekable;
use std::str::Chars;

/// The words of one simple command.
pub(super) type Words = Vec<String>;

/// The simple commands of a text, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Commands {
    /// Their words, without quotes.
    pub words: Vec<Vec<String>>,
    /// Whether a word depends on a variable or on which files there are.
    pub varies: bool,
}

/// Why a command cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unjudged(pub &'static str);

/// Words that are no commands to a shell, or that begin one which is more than its words.
const RESERVED: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "!", "[[", "coproc", "{", "}", "in", "]]",
];

/// Reads a text as `sh` would.
pub fn commands(text: &str) -> Result<Commands, Unjudged> {
    let mut reader = Reader { rest: text.chars().peekable(), found: Commands::default(), words: Vec::new() };
    reader.read()?;
    Ok(reader.found)
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    found: Commands,
    /// Of the command that is being read.
    words: Words,
}

/// A word as far as it is read.
#[derive(Default)]
struct Word {
    text: String,
    is_quoted: bool,
    /// Whether it has a variable or a pattern.
    varies: bool,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Unjudged> {
        loop {
            match self.rest.peek().copied() {
                None => {
                    self.end_command();
                    return Ok(());
                }
                Some(' ' | '\t') => drop(self.rest.next()),
                Some('\n' | ';') => {
                    self.rest.next();
                    self.end_command();
                }
                Some('&') => self.ampersand()?,
                Some('|') => {
                    self.rest.next();
                    self.rest.next_if(|next| matches!(next, '|' | '&'));
                    self.end_command();
                }
                Some('(' | ')') => return Err(Unjudged("it has parentheses")),
                Some('<' | '>') => self.redirection()?,
                Some('#') => while self.rest.next_if(|next| *next != '\n').is_some() {},
                Some('\\') if self.is_continued() => {}
                Some(_) => {
                    let word = self.word()?;
                    let is_descriptor = !word.is_quoted && word.text.bytes().all(|byte| byte.is_ascii_digit());
                    if is_descriptor && matches!(self.rest.peek(), Some('<' | '>')) {
                        self.redirection()?;
                    } else {
                        self.push(word)?;
                    }
                }
            }
        }
    }

    /// Whether a line goes on here, which is no word. Then it is read.
    fn is_continued(&mut self) -> bool {
        let mut ahead = self.rest.clone();
        let is_it = ahead.next() == Some('\\') && ahead.next() == Some('\n');
        if is_it {
            self.rest = ahead;
        }
        is_it
    }

    fn ampersand(&mut self) -> Result<(), Unjudged> {
        self.rest.next();
        if self.rest.peek() == Some(&'>') {
            return self.redirection();
        }
        self.rest.next_if_eq(&'&');
        self.end_command();
        Ok(())
    }

    /// To nowhere, or from one descriptor to another.
    fn redirection(&mut self) -> Result<(), Unjudged> {
        let first = self.rest.next();
        if self.rest.peek() == Some(&'<') {
            return Err(Unjudged("it has a here-document"));
        }
        if self.rest.peek() == Some(&'(') {
            return Err(Unjudged("it has a substitution"));
        }
        self.rest.next_if(|next| matches!(next, '>' | '|'));
        let is_descriptor = self.rest.next_if_eq(&'&').is_some();
        while self.rest.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
        let target = match self.rest.peek() {
            None | Some('\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => Word::default(),
            Some(_) => self.word()?,
        };
        let is_number =
            !target.text.is_empty() && target.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let is_harmless = if is_descriptor { is_number } else { target.text == "/dev/null" };
        if first.is_some() && is_harmless && !target.varies {
            Ok(())
        } else {
            Err(Unjudged("it reads or writes a file by redirection"))
        }
    }

    fn word(&mut self) -> Result<Word, Unjudged> {
        let mut word = Word::default();
        while let Some(next) = self.rest.next_if(|next| !" \t\n;&|()<>".contains(*next)) {
            match next {
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '\\' => match self.rest.next() {
                    Some('\n') => {}
                    Some(escaped) => {
                        word.text.push(escaped);
                        word.is_quoted = true;
                    }
                    None => return Err(Unjudged("it ends within a word")),
                },
                '$' => self.variable(&mut word)?,
                '`' => return Err(Unjudged("it has a substitution")),
                '*' | '?' | '[' | '{' | '~' => {
                    word.varies = true;
                    word.text.push(next);
                }
                '\0' => return Err(Unjudged("it has a NUL character")),
                plain => word.text.push(plain),
            }
        }
        Ok(word)
    }

    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Unjudged> {
        word.is_quoted = true;
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some('\0') => return Err(Unjudged("it has a NUL character")),
                Some(plain) => word.text.push(plain),
                None => return Err(Unjudged("a quote is not closed")),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Unjudged> {
        word.is_quoted = true;
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(Unjudged("it has a substitution")),
                Some('$') => self.variable(word)?,
                Some('\0') => return Err(Unjudged("it has a NUL character")),
                Some('\\') => match self.rest.next() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => word.text.push(escaped),
                    Some(other) => word.text.extend(['\\', other]),
                    None => return Err(Unjudged("a quote is not closed")),
                },
                Some(plain) => word.text.push(plain),
                None => return Err(Unjudged("a quote is not closed")),
            }
        }
    }

    /// After `$`: the name of a variable is kept, and anything else that a shell would put in its place is not judged.
    fn variable(&mut self, word: &mut Word) -> Result<(), Unjudged> {
        match self.rest.peek() {
            Some('(' | '{' | '[') => return Err(Unjudged("it has a substitution")),
            Some('\'' | '"') => return Err(Unjudged("it has a quote that means something else in another shell")),
            _ => {}
        }
        word.varies = true;
        word.text.push('$');
        Ok(())
    }

    fn push(&mut self, word: Word) -> Result<(), Unjudged> {
        if self.words.is_empty() {
            let name = word.text.split_once('=').map(|(name, _)| name);
            let is_name = |name: &str| {
                let name = name.strip_suffix('+').unwrap_or(name);
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            if name.is_some_and(is_name) {
                return Err(Unjudged("it sets a variable"));
            }
            if word.varies {
                return Err(Unjudged("its command depends on a variable or a pattern"));
            }
            if !word.is_quoted && RESERVED.contains(&word.text.as_str()) {
                return Err(Unjudged("it is more than simple commands"));
            }
        }
        self.found.varies |= word.varies;
        self.words.push(word.text);
        Ok(())
    }

    fn end_command(&mut self) {
        if !self.words.is_empty() {
            self.found.words.push(std::mem::take(&mut self.words));
        }
    }
}

/// Programs that run what their arguments or their input say.
const INTERPRETERS: [&str; 13] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "eval", "source", ".", "exec", "xargs", "parallel", "busybox"];

/// The name of a program without its folder.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a command begins with these words. A path to a program of that name may be another program.
pub(super) fn begins(command: &[String], pattern: &[String]) -> bool {
    command.len() >= pattern.len() && command.iter().zip(pattern).all(|(word, wanted)| word == wanted)
}

/// Whether a command has these words anywhere: behind `env`, `sudo` or `timeout`, they are run as well.
pub(super) fn has(command: &[String], pattern: &[String]) -> bool {
    let Some((first, rest)) = pattern.split_first() else { return false };
    let is_first = |word: &String| word == first || (!first.contains('/') && base(word) == first);
    command.iter().enumerate().any(|(at, word)| is_first(word) && begins(&command[at + 1..], rest))
}

/// Whether a command may run others that its words do not show.
pub(super) fn interprets(command: &[String]) -> bool {
    command.iter().any(|word| INTERPRETERS.contains(&base(word)))
}
