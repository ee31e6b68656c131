use super::Docstring;

fn parameters(text: &str) -> Vec<String> {
    let mut found: Vec<String> =
        Docstring::parse(text).parameters.into_iter().map(|(name, text)| format!("{name} = {text}")).collect();
    found.sort();
    found
}

#[test]
fn google_style() {
    let text = "Search.\n\n    Note: careful.\n\n    Args:\n        query (dict[str, int], optional): What:\n            to look for.\n\
                \n            - one\n            - two\n        *values: Rest.\n        a, b: Both.\n\n    Returns:\n        x: not an argument\n\
                \n    Raises:\n        y: nor this\n";
    assert_eq!(
        parameters(text),
        ["a = Both.", "b = Both.", "query = What: to look for.\n- one\n- two", "values = Rest."]
    );
    assert_eq!(Docstring::parse(text).description.as_deref(), Some("Search.\n\nNote: careful."));
}

#[test]
fn numpy_style() {
    let text = "Search.\n\n    Parameters\n    ----------\n    query : str\n        What to\n        look for.\n    a, b : int, optional\n\
                \x20       Both.\n    plain\n        No type.\n\n    Returns\n    -------\n    list\n        Results.\n";
    assert_eq!(parameters(text), ["a = Both.", "b = Both.", "plain = No type.", "query = What to look for."]);
    assert_eq!(Docstring::parse(text).description.as_deref(), Some("Search."));
}

#[test]
fn restructured_text_style() {
    let text = "Search.\n\n    :param query: What to\n        look for.\n    :type query: str\n    :param int count: How many.\n    :returns: list\n";
    assert_eq!(parameters(text), ["count = How many.", "query = What to look for."]);
    assert_eq!(Docstring::parse(text).description.as_deref(), Some("Search."));
}

#[test]
fn running_text_is_no_section() {
    let text = "Explain the\n    arguments:\n\n    Returns: nothing much.\n    See https://e.org: it helps.\n";
    let docs = Docstring::parse(text);
    assert!(docs.parameters.is_empty());
    assert_eq!(docs.summary.as_deref(), Some("Explain the arguments:"));
    assert!(docs.description.unwrap().ends_with("it helps."));
    assert_eq!(Docstring::parse("  \n \n"), Docstring::default());
    assert_eq!(Docstring::parse("\n\n  Summary below.\n\n  More.").summary.as_deref(), Some("Summary below."));
}
