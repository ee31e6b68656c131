//! Headers with one thing more in them, as a person would write it.

use std::ops::Range;

use toml::de::DeTable;

use super::Metadata;

impl Metadata {
    /// What to write so that this package is declared: the words of an advice, with the line.
    pub fn declaring(&self, package: &str) -> String {
        let opening = self.first_line - 1;
        let whole = || format!("write the line `# dependencies = [\"{package}\"]` after line {opening}");
        let Ok(table) = DeTable::parse(&self.toml) else { return whole() };
        table.get_ref().get("dependencies").map_or_else(whole, |list| self.with_item(list.span(), package))
    }

    /// What to write so that this secret is declared.
    pub fn declaring_secret(&self, name: &str) -> String {
        let closing = self.first_line + self.toml.lines().count();
        let whole =
            || format!("write the two lines `# [tool.hostler]` and `# secrets = [\"{name}\"]` before line {closing}");
        let Ok(table) = DeTable::parse(&self.toml) else { return whole() };
        let wishes = table.get_ref().get("tool").and_then(|tools| tools.get_ref().get("hostler"));
        let head = self.toml.lines().position(|line| line.trim().starts_with("[tool.hostler]"));
        match (wishes.and_then(|wishes| wishes.get_ref().get("secrets")), head) {
            (Some(list), _) => self.with_item(list.span(), name),
            (None, Some(head)) => {
                format!("write the line `# secrets = [\"{name}\"]` after line {}", self.first_line + head)
            }
            (None, None) => whole(),
        }
    }

    /// One item more in a list.
    fn with_item(&self, span: Range<usize>, item: &str) -> String {
        let number = self.first_line + self.toml[..span.start].matches('\n').count();
        let list = &self.toml[span.clone()];
        if list.contains('\n') {
            return format!("write the line `#   \"{item}\",` after line {number}");
        }
        let items = list.get(1..list.len().saturating_sub(1)).unwrap_or_default().trim().trim_end_matches(',');
        let comma = if items.is_empty() { "" } else { ", " };
        let start = self.toml[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let rest = self.toml[span.end..].lines().next().unwrap_or_default();
        let key = &self.toml[start..span.start];
        format!("write line {number} as `# {key}[{items}{comma}\"{item}\"]{rest}`")
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::Metadata;

    #[test]
    fn secrets_stand_in_their_table() {
        let told = |toml: &str| {
            let header = Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
            header.declaring_secret("KEY")
        };
        let table = "dependencies = []\n[tool.hostler]\n";
        assert_eq!(told(table), "write the line `# secrets = [\"KEY\"]` after line 3");
        assert_eq!(told(&format!("{table}secrets = [\"A\"]\n")), "write line 4 as `# secrets = [\"A\", \"KEY\"]`");
        assert_eq!(
            told("dependencies = []\n"),
            "write the two lines `# [tool.hostler]` and `# secrets = [\"KEY\"]` before line 3"
        );
    }

    #[test]
    fn the_line_is_written_out() {
        let told = |toml: &str| {
            let header = Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
            header.declaring("pyyaml")
        };
        assert_eq!(told("dependencies = []\n"), "write line 2 as `# dependencies = [\"pyyaml\"]`");
        assert_eq!(
            told("requires-python = \">=3.9\"\ndependencies = [\"httpx[http2]\",] # web\n"),
            "write line 3 as `# dependencies = [\"httpx[http2]\", \"pyyaml\"] # web`"
        );
        assert_eq!(told("dependencies = [\n  \"httpx\"\n]\n"), "write the line `#   \"pyyaml\",` after line 2");
        assert_eq!(
            told("requires-python = \">=3.9\"\n"),
            "write the line `# dependencies = [\"pyyaml\"]` after line 1"
        );
    }
}
