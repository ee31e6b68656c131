//! Headers with one thing more in them, as a person would write it.

use toml::de::DeTable;

use super::Metadata;

impl Metadata {
    /// What to write so that this package is declared: the words of an advice, with the line.
    pub fn declaring(&self, package: &str) -> String {
        let opening = self.first_line - 1;
        let whole = format!("write the line `# dependencies = [\"{package}\"]` after line {opening}");
        let Ok(table) = DeTable::parse(&self.toml) else { return whole };
        let Some(value) = table.get_ref().get("dependencies") else { return whole };
        let span = value.span();
        let number = self.first_line + self.toml[..span.start].matches('\n').count();
        let list = &self.toml[span.clone()];
        if list.contains('\n') {
            return format!("write the line `#   \"{package}\",` after line {number}");
        }
        let items = list.get(1..list.len().saturating_sub(1)).unwrap_or_default().trim().trim_end_matches(',');
        let comma = if items.is_empty() { "" } else { ", " };
        let start = self.toml[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let rest = self.toml[span.end..].lines().next().unwrap_or_default();
        let key = &self.toml[start..span.start];
        let line = format!("# {key}[{items}{comma}\"{package}\"]{rest}");
        format!("write line {number} as `{line}`")
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::Metadata;

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
