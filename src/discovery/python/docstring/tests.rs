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
fn lists_and_dashes() {
    let text = "Make it.\n\n    Parameters:\n    - kind: Which\n      one (CUBE).\n    - a_size (int): How large.\n\n    Returns:\n    A message.\n\n    Done.\n";
    assert_eq!(parameters(text), ["a_size = How large.", "kind = Which one (CUBE)."]);
    let docs = Docstring::parse(text);
    assert_eq!(docs.description.as_deref(), Some("Make it.\n\nReturns:\nA message.\n\nDone."), "it is no list");
    assert_eq!(
        parameters("X.\n\n    Args:\n        a -- one\n        b - two\n        * c: three\n"),
        ["a = one", "b = two", "c = three"]
    );
}

#[test]
fn what_follows_sections_is_kept() {
    let text = "Search.\n\n    More of it.\n\n\n    Args:\n        a: One.\n\n    Example:\n        >>> f(1)\n\n    Raises:\n        E: never\n    Note: careful.\n";
    let docs = Docstring::parse(text);
    let expected = "Search.\n\nMore of it.\n\n\nExample:\n    >>> f(1)\n\nNote: careful.";
    assert_eq!((docs.description.as_deref(), docs.summary.as_deref()), (Some(expected), Some("Search.")));
    let docs = Docstring::parse("Args:\n    a: One.\n\nAfter.\n");
    assert_eq!((docs.description.as_deref(), docs.summary), (Some("After."), None));
    let docs = Docstring::parse("S.\n\n    :param a: One.\n    :returns: x\n\n    After.\n");
    assert_eq!(docs.description.as_deref(), Some("S.\n\nAfter."));
    let numpy = "S.\n\n    Returns\n    -------\n    int\n        x\n\n    Examples\n    --------\n    >>> 1\n";
    assert_eq!(Docstring::parse(numpy).description.as_deref(), Some("S.\n\nExamples\n--------\n>>> 1"));
}

#[test]
fn an_example_is_text_whatever_it_looks_like() {
    let section = "Args:\n        q: Inside.\n    Returns:\n        Nothing.\n    :param n: Inside.\n";
    for (before, after) in [("```python", "```"), ("~~~", "~~~"), ("Example::\n", "Done.")] {
        let section = if before.ends_with('\n') { section.replace("    ", "        ") } else { section.to_owned() };
        let margin = if before.ends_with('\n') { "        " } else { "    " };
        let text = format!(
            "Search.\n\n    {before}\n{margin}{section}    {after}\n\n    Args:\n        a: One.\n\n    Tail.\n"
        );
        let docs = Docstring::parse(&text);
        assert_eq!(parameters(&text), ["a = One."], "{text}");
        assert_eq!(docs.returns, None);
        let description = docs.description.unwrap();
        assert!(description.contains("q: Inside.") && description.ends_with("\n\nTail."), "{description}");
    }
    let longer =
        "Search.\n\n    ````\n    ```\n    Args:\n        q: Inner.\n    ```\n    ````\n\n    Args:\n        a: One.\n";
    assert_eq!(parameters(longer), ["a = One."]);
    let heading = "Search\n~~~~~~\n\n:param q: What.\n\nNotes\n~~~~~\n";
    assert_eq!(parameters(heading), ["q = What."]);
    let inline = "Search.\n\n    ```search``` finds.\n\n    Args:\n        a: One.\n\n    ```\n    x\n    ```\n";
    assert_eq!(parameters(inline), ["a = One."]);
    assert_eq!(parameters("Search.\n\n    ```\n    Args:\n        a: It has no end.\n"), ["a = It has no end."]);
}

#[test]
fn running_text_is_not_a_section() {
    let text = "Explain the\n    arguments:\n\n    Returns: nothing much.\n    See https://e.org: it helps.\n";
    let docs = Docstring::parse(text);
    assert!(docs.parameters.is_empty());
    assert_eq!(docs.summary.as_deref(), Some("Explain the arguments:"));
    assert!(docs.description.unwrap().ends_with("it helps."));
    assert_eq!(Docstring::parse("  \n \n"), Docstring::default());
    assert_eq!(Docstring::parse("\n\n  Summary below.\n\n  More.").summary.as_deref(), Some("Summary below."));
}
