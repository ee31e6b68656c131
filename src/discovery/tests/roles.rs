use serde_json::json;

use super::super::{Presented, Role, ToolFile};
use super::{file_at, function};

fn resource(uri: &str, mime_type: Option<&str>, title: Option<&str>) -> Role {
    let presented = Presented { name: None, title: title.map(str::to_owned) };
    Role::Resource { uri: uri.to_owned(), mime_type: mime_type.map(str::to_owned), presented }
}

#[test]
fn a_decorator_makes_a_resource_or_a_prompt() {
    let of = |before: &str, decorator: &str| {
        function(&format!("{before}\n{decorator}\ndef f(id: int) -> str:\n    'Text.'\n"))
    };
    let note = of("import hostler", "@hostler.resource('notes://{id}', mime_type='text/markdown', title='A note')");
    assert_eq!(note.role, resource("notes://{id}", Some("text/markdown"), Some("A note")));
    assert_eq!((note.output_schema, note.summary.as_deref()), (None, Some("Text.")));
    assert_eq!(note.input_schema.read()["properties"], json!({"id": {"type": "integer"}}));
    for (before, decorator) in [
        ("import hostler as h", "@h.resource(uri='notes://{id}')"),
        ("from hostler import resource", "@resource('notes://{id}')"),
        ("from hostler import resource as own", "@other\n@own('notes://{id}')"),
    ] {
        assert_eq!(of(before, decorator).role, resource("notes://{id}", None, None), "{decorator}");
    }
    for (decorator, name) in
        [("@hostler.prompt", None), ("@hostler.prompt()", None), ("@hostler.prompt('review')", Some("review"))]
    {
        let presented = Presented { name: name.map(str::to_owned), title: None };
        assert_eq!(of("import hostler", decorator).role, Role::Prompt(presented), "{decorator}");
    }
    let described = of("import hostler", "@hostler.prompt(description='Other.', title='T')");
    assert_eq!((described.summary.as_deref(), described.description.as_deref()), (Some("Other."), Some("Other.")));
    for (before, decorator) in
        [("import resource", "@resource.resource('a://b')"), ("import hostler", "@hostler.secret('x')")]
    {
        assert_eq!(of(before, decorator).role, Role::Tool, "{decorator}");
    }
}

#[test]
fn a_role_needs_no_public_name_and_leaves_the_tools() {
    let text = "import hostler\n__all__ = ['tool']\n@hostler.prompt\ndef _p(): ...\ndef tool(): ...\n\
                @hostler.resource('a://b')\ndef r(): ...\ndef hidden(): ...\n";
    let file: ToolFile = file_at("a.py", text);
    let roles: Vec<_> = file.functions.iter().map(|one| (one.name.as_str(), one.role.is_tool())).collect();
    assert_eq!(roles, [("_p", false), ("tool", true), ("r", false)]);
    let only: ToolFile = file_at("b.py", "import hostler\n@hostler.prompt\ndef p(): ...\n");
    assert!(only.is_ready() && only.warnings.is_empty());
}

#[test]
fn a_wrong_decorator_is_a_warning_and_never_a_tool() {
    for (decorator, words) in [
        ("@hostler.resource", "needs a URI"),
        ("@hostler.resource()", "needs a URI"),
        ("@hostler.resource(URI)", "computed"),
        ("@hostler.resource('notes')", "not a URI"),
        ("@hostler.resource('hostler://{id}')", "hostler's own"),
        ("@hostler.resource('notes://{other}')", "not a parameter"),
        ("@hostler.resource('notes://all')", "not in its URI"),
        ("@hostler.resource('notes://{id}{x}')", "adjacent"),
        ("@hostler.prompt(NAME)", "computed"),
        ("@hostler.prompt\n@hostler.prompt", "two role decorators"),
        ("@hostler.resource('notes://{id}', mime_type=TYPE)", "its mime_type is computed"),
        ("@hostler.prompt(title=f'a {1}')", "its title is computed"),
        ("@hostler.prompt(description='a' + 'b')", "its description is computed"),
        ("@hostler.prompt(icon='../a.png')", "the address or the path of an image"),
    ] {
        let file: ToolFile =
            file_at("a.py", &format!("import hostler\n{decorator}\ndef f(id, x=1): ...\ndef g(): ...\n"));
        let names: Vec<_> = file.functions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["g"], "{decorator}");
        let warning = &file.warnings[0];
        assert!(
            warning.rule == "role" && warning.line == 2 && warning.reason.to_string().contains(words),
            "{warning:?}"
        );
    }
}
