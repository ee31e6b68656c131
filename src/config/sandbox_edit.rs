//! Writes the `sandbox` of a tool into the text of a hostler.toml, and leaves everything else in it as it is.

use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::hosts::Network;
use super::origin::Diagnosis;
use super::sandbox::{Preset, SandboxLayer};
use super::value::Word;

/// A longer line is broken.
const LONGEST_LINE: usize = 120;

impl SandboxLayer {
    /// It as the value of a key: `"pure"`, or a table.
    pub fn written(&self) -> String {
        let preset = self.preset.map(|preset| quoted(preset.word()));
        let is_preset_alone = Self { preset: None, ..self.clone() } == Self::default();
        if let Some(preset) = preset.as_ref().filter(|_| is_preset_alone) {
            return preset.clone();
        }
        let whole = |lists: &dyn Fn(&[String]) -> String| {
            let mut parts: Vec<String> = preset.iter().map(|preset| format!("preset = {preset}")).collect();
            let mut list = |key: &str, paths: &Option<Vec<String>>| {
                parts.extend(paths.iter().map(|paths| format!("{key} = {}", lists(paths))));
            };
            list("read", &self.read);
            list("write", &self.write);
            list("hide", &self.hide);
            parts.extend(self.network.iter().map(|network| format!("network = {}", network.written())));
            parts.extend(self.processes.map(|most| format!("processes = {most}")));
            parts.extend(self.open_files.map(|most| format!("open_files = {most}")));
            parts.extend(self.file_size.map(|most| format!("file_size = {most}")));
            parts.extend(self.require.map(|require| format!("require = {require}")));
            format!("{{ {} }}", parts.join(", "))
        };
        let line =
            whole(&|paths| format!("[{}]", paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(", ")));
        if line.chars().count() <= LONGEST_LINE {
            return line;
        }
        // Within a list, every version of TOML allows new lines.
        whole(&|paths| {
            let each: Vec<String> = paths.iter().map(|path| format!("    {},\n", quoted(path))).collect();
            format!("[\n{}]", each.concat())
        })
    }

    /// This one, with what another one allows besides.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let (reads_all, writes_all, reaches_all) = Preset::implied(self.preset);
        let both = |own: &Option<Vec<String>>, more: &Option<Vec<String>>| {
            let mut all = own.clone().unwrap_or_default();
            for path in more.iter().flatten() {
                if !all.iter().any(|own| Path::new(path).starts_with(own)) {
                    all.push(path.clone());
                }
            }
            (own.is_some() || !all.is_empty()).then_some(all)
        };
        let limits_reading = self.read.is_some() || !reads_all;
        let limits_writing = self.write.is_some() || !writes_all || self.read.is_some();
        let network = match (self.network.clone(), more.reached()) {
            (None, _) if reaches_all => None,
            (Some(Network::On), _) => Some(Network::On),
            (own, Network::Off) => own,
            (Some(Network::Hosts(mut own)), Network::Hosts(more)) => {
                own.extend(more.into_iter().filter(|host| !own.contains(host)).collect::<Vec<_>>());
                Some(Network::Hosts(own))
            }
            (_, more) => Some(more),
        };
        Self {
            read: if limits_reading { both(&self.read, &more.read) } else { None },
            write: if limits_writing { both(&self.write, &more.write) } else { None },
            network,
            ..self.clone()
        }
    }

    /// How far it opens the network.
    fn reached(&self) -> Network {
        let of_preset = if Preset::implied(self.preset).2 { Network::On } else { Network::Off };
        self.network.clone().unwrap_or(of_preset)
    }

    /// It as the value of a key, for programs.
    pub fn as_toml(&self) -> Option<Value> {
        let mut table: Table = toml::from_str(&format!("sandbox = {}", self.written())).ok()?;
        table.remove("sandbox")
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// The text with this sandbox under `[tool.NAME]`. It is parsed again: nothing else has changed, or the edit is refused.
pub fn with_sandbox(text: &str, tool: &str, sandbox: &SandboxLayer) -> Result<String, Diagnosis> {
    let value = sandbox.written();
    let refused = |why: &str| {
        let what = format!("hostler.toml is not changed: {why}");
        Diagnosis::new(what, format!("write `sandbox = {value}` under [tool.{}] yourself", key(tool)))
    };
    let mut wanted: Table = toml::from_str(text).map_err(|_| refused("it is not valid TOML"))?;
    let parsed = sandbox.as_toml().ok_or_else(|| refused("the line is not valid"))?;
    let tools = wanted.entry("tool").or_insert_with(|| Value::Table(Table::new()));
    let tools = tools.as_table_mut().ok_or_else(|| refused("`tool` is not a table"))?;
    let own = tools.entry(tool).or_insert_with(|| Value::Table(Table::new()));
    let own = own.as_table_mut().ok_or_else(|| refused("the settings of the tool are not a table"))?;
    own.insert("sandbox".to_owned(), parsed);
    let is_wanted = |candidate: &String| toml::from_str::<Table>(candidate).is_ok_and(|table| table == wanted);
    let mut candidates = replaced(text, tool, &value).into_iter().chain(inserted(text, tool, &value));
    let found = candidates.find(is_wanted).or_else(|| Some(appended(text, tool, &value)).filter(is_wanted));
    found.ok_or_else(|| refused("the sandbox is written in a form that cannot be replaced"))
}

/// With another value in the place of the one that is there.
fn replaced(text: &str, tool: &str, value: &str) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    let inner = |value: &'_ Spanned<DeValue<'_>>, key: &str| -> Option<std::ops::Range<usize>> {
        Some(value.get_ref().as_table()?.get(key)?.span())
    };
    let tools = table.get_ref().get("tool")?.get_ref().as_table()?;
    let span = inner(tools.get(tool)?, "sandbox")?;
    Some(format!("{}{value}{}", text.get(..span.start)?, text.get(span.end..)?))
}

/// With a line below each line that may begin the tool's table.
fn inserted<'t>(text: &'t str, tool: &'t str, value: &'t str) -> impl Iterator<Item = String> + 't {
    let begins = move |line: &str| {
        let table: Option<Table> = line.trim_start().starts_with('[').then(|| toml::from_str(line).ok()).flatten();
        let own = table.as_ref().and_then(|table| table.get("tool")?.as_table()?.get(tool)?.as_table());
        own.is_some_and(Table::is_empty)
    };
    let mut end = 0;
    let ends = text.split_inclusive('\n').filter_map(move |line| {
        end += line.len();
        begins(line).then_some((end, line.ends_with('\n')))
    });
    ends.map(move |(end, is_whole)| {
        let first = if is_whole { "" } else { "\n" };
        in_its_lines(text, &format!("{first}sandbox = {value}\n"), end)
    })
}

/// With a table of the tool at the end.
fn appended(text: &str, tool: &str, value: &str) -> String {
    let first = match text {
        "" => "",
        text if text.ends_with("\n\n") || text.ends_with("\n\r\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    in_its_lines(text, &format!("{first}[tool.{}]\nsandbox = {value}\n", key(tool)), text.len())
}

/// Lines within a text, which end as its lines do.
fn in_its_lines(text: &str, lines: &str, at: usize) -> String {
    let lines = if text.contains("\r\n") { lines.replace('\n', "\r\n") } else { lines.to_owned() };
    format!("{}{lines}{}", &text[..at], &text[at..])
}

/// A key as it is written.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pure() -> SandboxLayer {
        SandboxLayer { preset: Some(Preset::Pure), ..SandboxLayer::default() }
    }

    fn edited(text: &str) -> String {
        with_sandbox(text, "report", &pure()).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn the_line_is_put_where_it_belongs() {
        for (before, after) in [
            ("", "[tool.report]\nsandbox = \"pure\"\n"),
            ("# mine\nlog = \"info\"", "# mine\nlog = \"info\"\n\n[tool.report]\nsandbox = \"pure\"\n"),
            (
                "[tool.report] # why\n# then\ntimeout = \"1s\"\n",
                "[tool.report] # why\nsandbox = \"pure\"\n# then\ntimeout = \"1s\"\n",
            ),
            ("[tool.report]", "[tool.report]\nsandbox = \"pure\"\n"),
            ("[ tool . \"report\" ]\r\n[x]\r\n", "[ tool . \"report\" ]\r\nsandbox = \"pure\"\r\n[x]\r\n"),
            (
                "[tool.report]\nsandbox = { read = [\n  \"a\", # one\n] } # why\n",
                "[tool.report]\nsandbox = \"pure\" # why\n",
            ),
            ("[tool.report.env]\nA = \"1\"\n", "[tool.report.env]\nA = \"1\"\n\n[tool.report]\nsandbox = \"pure\"\n"),
            ("[tool]\nreport.sandbox = \"full\"\n", "[tool]\nreport.sandbox = \"pure\"\n"),
            (
                "x = '''\n[tool.report]\n'''\n[tool.report]\n",
                "x = '''\n[tool.report]\n'''\n[tool.report]\nsandbox = \"pure\"\n",
            ),
        ] {
            assert_eq!(edited(before), after, "{before}");
        }
    }

    #[test]
    fn what_cannot_be_edited_is_refused_with_the_line() {
        for text in [
            "[tool.report.sandbox]\npreset = \"full\"\n",
            "tool.report = 3",
            "tool = 3",
            "[tool",
            "tool = { report = {} }",
        ] {
            let refused = with_sandbox(text, "report", &pure()).unwrap_err();
            assert!(refused.fix.contains("`sandbox = \"pure\"` under [tool.report]"), "{text}: {refused}");
        }
    }

    fn layer(value: &str) -> SandboxLayer {
        let table = format!("sandbox = {value}");
        let table = DeTable::parse(&table).unwrap();
        SandboxLayer::read(table.get_ref().get("sandbox").unwrap().get_ref()).unwrap()
    }

    #[test]
    fn a_sandbox_is_written_as_it_is_read() {
        let long: Vec<String> = (0..20).map(|number| format!("$HOME/a folder/\"{number}\"")).collect();
        let whole = SandboxLayer {
            read: Some(long),
            write: Some(vec!["/srv/x".to_owned()]),
            network: Some(Network::Hosts(vec!["example.com:443".parse().unwrap()])),
            hide: Some(Vec::new()),
            processes: Some(2),
            open_files: Some(3),
            file_size: Some(1000),
            require: Some(true),
            ..pure()
        };
        assert_eq!(layer(&whole.written()), whole);
        assert!(whole.written().lines().all(|line| line.len() <= LONGEST_LINE), "{}", whole.written());
        let open = SandboxLayer { network: Some(Network::Off), read: Some(Vec::new()), ..SandboxLayer::default() };
        assert_eq!(layer(&open.written()), open);
        assert_eq!(pure().written(), "\"pure\"");
    }

    #[test]
    fn what_another_one_allows_is_added() {
        for (own, more, both) in [
            (r#""pure""#, r#"{ preset = "pure", read = ["a"] }"#, r#"{ preset = "pure", read = ["a"] }"#),
            (
                r#"{ preset = "pure", read = ["a", "b"], hide = ["h"] }"#,
                r#"{ preset = "pure", read = ["a/x", "c"], write = ["w"] }"#,
                r#"{ preset = "pure", read = ["a", "b", "c"], write = ["w"], hide = ["h"] }"#,
            ),
            (r#""reader""#, r#"{ preset = "pure", read = ["a"] }"#, r#""reader""#),
            (r#""full""#, r#"{ preset = "pure", write = ["a"] }"#, r#""full""#),
            (r#""network""#, r#"{ preset = "pure", network = ["x.org"] }"#, r#""network""#),
            (
                r#"{ preset = "pure", network = ["x.org", "y.org"] }"#,
                r#"{ preset = "pure", network = ["z.org", "x.org"] }"#,
                r#"{ preset = "pure", network = ["x.org", "y.org", "z.org"] }"#,
            ),
            (r#"{ preset = "pure", network = ["x.org"] }"#, r#""network""#, r#"{ preset = "pure", network = "on" }"#),
        ] {
            assert_eq!(layer(own).and(&layer(more)).written(), both, "{own} and {more}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::Integer),
            any::<bool>().prop_map(Value::Boolean),
            "[a-z\"\\[\\]\n#. ]{0,12}".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::btree_map("[a-z. ]{1,6}", inner, 0..4)
                    .prop_map(|map| Value::Table(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_other_key_stays(
            mut other in proptest::collection::btree_map("[a-z]{1,5}", values(), 0..5),
            tools in proptest::collection::btree_map("report|[a-z]{1,5}", proptest::collection::btree_map("[a-z]{1,5}", values(), 0..3), 0..3),
            tool in "report|[a-z. ]{1,6}",
        ) {
            let tools: Table = tools.into_iter().map(|(name, own)| (name, Value::Table(own.into_iter().collect()))).collect();
            other.insert("tool".to_owned(), Value::Table(tools));
            let text = format!("# a comment\n{}", toml::to_string(&Table::from_iter(other)).unwrap());
            if let Ok(edited) = with_sandbox(&text, &tool, &pure()) {
                let mut table: Table = toml::from_str(&edited).unwrap();
                let own = table["tool"].as_table_mut().unwrap()[&tool].as_table_mut().unwrap();
                prop_assert_eq!(own.remove("sandbox"), Some(Value::String("pure".to_owned())));
                let mut before: Table = toml::from_str(&text).unwrap();
                if let Some(own) = before["tool"].as_table_mut().unwrap().get_mut(&tool) {
                    own.as_table_mut().unwrap().remove("sandbox");
                } else {
                    prop_assert!(own.is_empty());
                    table["tool"].as_table_mut().unwrap().remove(&tool);
                }
                if before["tool"].as_table().unwrap().is_empty() && !table.contains_key("tool") {
                    before.remove("tool");
                }
                prop_assert_eq!(table, before);
                prop_assert!(edited.starts_with("# a comment\n"));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,80}", tool in ".{0,8}") {
            let _ = with_sandbox(&text, &tool, &pure());
        }
    }
}
