//! A file as one tool that runs it as a program: `serve = "main"`. Its command line is read from its calls of `argparse`.

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use serde_json::{Value, json};

use super::literals::{keyword, literal};
use super::module::Module;
use super::schema::schema;
use crate::discovery::{Function, JsonSchema, Role};
use crate::words::first_paragraph;

/// The name of the tool.
const NAME: &str = "main";
/// More options are left out of the description.
const MOST: usize = 100;

/// The tool that a module is when it is run as a program.
pub(super) fn program(module: &Module<'_>, body: &[Stmt]) -> Function {
    let mut calls = Calls::default();
    calls.visit_body(body);
    let of_parser = || calls.named("ArgumentParser").find_map(|call| text(module, keyword(call, "description")?));
    let own = module.docstring.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).or_else(of_parser);
    let options: Vec<String> = calls.0.iter().filter_map(|call| described(module, call)).take(MOST).collect();
    let list = (!options.is_empty()).then(|| format!("Its command line (`argv`):\n{}", options.join("\n")));
    let parts: Vec<String> = own.iter().cloned().chain(list).collect();
    let arguments = json!({
        "type": "object",
        "properties": {
            "argv": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The arguments of the command line, one item each.",
                "default": [],
            },
            "stdin": {"type": "string", "description": "What the program reads from its standard input.", "default": ""},
        },
        "additionalProperties": false,
    });
    Function {
        name: NAME.to_owned(),
        symbol: None,
        served_as: None,
        wanted: None,
        summary: own.as_deref().map(first_paragraph),
        description: (!parts.is_empty()).then(|| parts.join("\n\n")),
        input_schema: JsonSchema::of(&schema(arguments)),
        output_schema: None,
        is_async: false,
        line: 1,
        role: Role::Tool,
        declared: None,
        hints: None,
        defined_in: None,
        server: None,
    }
}

/// Whether a statement at the top level does something besides defining names. Most files assign what a call returns.
pub(super) fn does_something(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expression) => !expression.value.is_string_literal_expr(),
        Stmt::For(_) | Stmt::While(_) | Stmt::With(_) | Stmt::Try(_) | Stmt::Raise(_) | Stmt::Match(_) => true,
        _ => false,
    }
}

/// A line about one argument: `parser.add_argument("--limit", "-l", help="How many.", choices=[1, 2])`
fn described(module: &Module<'_>, call: &ExprCall) -> Option<String> {
    let method = call.func.as_attribute_expr()?.attr.as_str();
    let names: Vec<String> = call.arguments.args.iter().filter_map(|name| text(module, name)).collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        return None;
    }
    let help = keyword(call, "help").and_then(|help| text(module, help)).map(|help| format!(": {help}"));
    let help = help.unwrap_or_default();
    match method {
        "add_parser" => Some(format!("- command {}{help}", names.join(", "))),
        "add_argument" => {
            let choices = keyword(call, "choices").and_then(|choices| literal(choices, module)).filter(Value::is_array);
            let choices = choices.map(|choices| format!(", one of {choices}")).unwrap_or_default();
            let is_required = keyword(call, "required").and_then(|value| literal(value, module)) == Some(true.into());
            let required = if is_required { ", required" } else { "" };
            Some(format!("- {}{choices}{required}{help}", names.join(", ")))
        }
        _ => None,
    }
}

fn text(module: &Module<'_>, value: &Expr) -> Option<String> {
    Some(literal(value, module)?.as_str()?.trim().to_owned())
}

/// The calls that are statements or assigned, in the functions and at the top level of a module, in order.
#[derive(Default)]
struct Calls<'a>(Vec<&'a ExprCall>);

impl<'a> Calls<'a> {
    fn named(&self, name: &str) -> impl Iterator<Item = &'a ExprCall> {
        self.0.iter().copied().filter(move |call| match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str() == name,
            Expr::Name(own) => own.id.as_str() == name,
            _ => false,
        })
    }
}

impl<'a> StatementVisitor<'a> for Calls<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Expr(expression) => self.chain(&expression.value),
            Stmt::Assign(assign) => self.chain(&assign.value),
            _ => walk_stmt(self, statement),
        }
    }
}

impl<'a> Calls<'a> {
    /// `commands.add_parser("x").add_argument("y")`. Nothing deeper is looked at: expressions may nest without end.
    fn chain(&mut self, expression: &'a Expr) {
        let (mut at, first) = (expression, self.0.len());
        while let Expr::Call(call) = at {
            self.0.push(call);
            let Expr::Attribute(attribute) = &*call.func else { break };
            at = &attribute.value;
        }
        self.0[first..].reverse();
    }
}
