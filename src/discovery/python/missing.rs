//! What is reported where a file has fewer tools than its author may expect.

use ruff_text_size::Ranged;

use super::frameworks::{extends_open_webui, foreign_tools, idle_classes, needed_by_constructor, server_of_document};
use super::module::Module;
use crate::discovery::several::{INNER_TOOLS, MARK};

const NO_TOOLS_OF_SERVER: &str = "the file makes an MCP server, and no tools of it are found";

/// Warns of tools that a server is given and that cannot be resolved by reading the file.
pub(super) fn warn_of_unread(module: &mut Module<'_>, source: &str) {
    for (call, value) in std::mem::take(&mut module.offers.unread) {
        let given = source.get(value.range().to_std_range()).unwrap_or_default();
        let given = given.lines().next().unwrap_or_default();
        let what =
            format!("the server is given `{given}`, which cannot be resolved by reading the file, so it is not served");
        let fix =
            "give it functions by name, `mcp.tool()(search)`, or in a loop over a list of them that is written there";
        module.warn(module.lines.of_node(call), INNER_TOOLS, what, fix);
    }
}

/// Warns of functions that make tools and that the worker does not call.
pub(super) fn warn_of_makers(module: &mut Module<'_>) {
    let unserved = module.offers.makers.iter().filter_map(|maker| Some((&maker.function.name, maker.obstacle?)));
    let unserved: Vec<_> = unserved.map(|(name, why)| (module.lines.of_node(name), name.as_str(), why)).collect();
    for (line, name, (why, fix)) in unserved {
        let what = format!("the tools that `{name}` makes when it is called are not served: {why}");
        module.warn(line, INNER_TOOLS, what, fix);
    }
}

/// Warns of tools that a framework's class makes of something else than a function of the file.
pub(super) fn warn_of_unmade(module: &mut Module<'_>, source: &str) {
    for (call, value) in std::mem::take(&mut module.offers.unmade) {
        let made_of = source.get(value.range().to_std_range()).unwrap_or_default().lines().next().unwrap_or_default();
        let what = format!(
            "`{made_of}` is not called as a function of this file, so the tool that is made of it is not served"
        );
        let fix = "make it of a function with parameters, `def search(query: str) -> str: …`";
        module.warn(module.lines.of_node(call), INNER_TOOLS, what, fix);
    }
}

/// The line where a file makes a server or an agent of tools that are not written in it, what that means, and what to do.
fn tools_made_elsewhere(module: &Module<'_>) -> Option<(usize, String, &'static str)> {
    if let Some((call, by)) = server_of_document(module) {
        let what = format!("`{by}` makes tools while it runs, and those are not served");
        let fix = "write a function with `@mcp.tool` for each tool that you need";
        return Some((module.lines.of_node(call), what, fix));
    }
    let given = foreign_tools(module);
    let (call, first, full) = given.first()?;
    let others = match given.len() {
        1 => String::new(),
        2 => format!(" and `{}`", given[1].1),
        count => format!(" and {} others", count - 1),
    };
    let (tools, are) = if given.len() == 1 { ("tool", "is") } else { ("tools", "are") };
    let module_of = |full: &str| {
        full.rsplit_once('.').map(|(from, _)| from).filter(|from| !from.is_empty()).unwrap_or(".").to_owned()
    };
    let from = module_of(full);
    let are_of_one = given.iter().all(|(_, _, full)| module_of(full) == from);
    let from = if are_of_one { format!("from `{from}`") } else { "from other modules".to_owned() };
    let what = format!("no public functions; the agent's {tools} `{first}`{others} {are} imported {from}");
    let fix = if full.starts_with('.') {
        "put the file that defines them into the folder, or write functions here that call them"
    } else {
        "write functions here that call them"
    };
    Some((module.lines.of_node(*call), what, fix))
}

/// Says what to do in a file without tools.
pub(super) fn warn_of_no_tools(module: &mut Module<'_>) {
    let idle = idle_classes(module);
    if let Some(class) = idle.first().filter(|_| !module.servers.makes) {
        let (line, name) = (module.lines.of_node(&class.name), &class.name);
        let others = match idle.len() {
            1 => String::new(),
            2 => format!(" and `{}`", idle[1].name),
            count => format!(" and {} other classes", count - 1),
        };
        let what = format!("no public functions; the methods of `{name}`{others} are not served");
        let arguments = if needed_by_constructor(module, class).is_some() { "…" } else { "" };
        let instance =
            format!("make an instance and name it: `tools = {name}({arguments})` and `__all__ = [\"tools\"]`");
        let fix = if extends_open_webui(class) {
            "it extends Open WebUI, and is no tool; the tools of Open WebUI are the methods of `class Tools`".to_owned()
        } else if module.is_program {
            format!("to serve the file as one program, set `serve = \"main\"` in its header; or {instance}")
        } else {
            instance
        };
        module.warn(line, "no-tools", what, &fix);
    } else if let Some((line, what, fix)) = tools_made_elsewhere(module) {
        module.warn(line, "no-tools", what, fix);
    } else {
        let makes_program = !module.servers.program.groups.is_empty();
        let what = match (module.servers.makes, makes_program) {
            (true, _) => NO_TOOLS_OF_SERVER,
            (_, true) => "the file makes a group of commands, and no commands of it are found",
            _ => "no public functions",
        };
        let fix = if module.servers.makes {
            MARK
        } else if makes_program {
            "decorate functions with its `command()`, or name functions in `__all__`"
        } else if module.runs_main {
            "`main` is the program of the file; to serve it as one tool with a command line, set `serve = \"main\"` in the \
             header"
        } else {
            "define one without a leading underscore, or name it in `__all__`; to serve the file as one program, set \
             `serve = \"main\"` in its header"
        };
        module.warn(1, "no-tools", what, fix);
    }
}
