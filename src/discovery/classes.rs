//! What kind of class a class of the file is, and what it inherits. Its schema is made in [`super::objects`].

use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef};

use super::module::Module;
use super::names::Named;

/// The kinds of class whose JSON form is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassKind {
    Enumeration,
    Dataclass,
    TypedDict,
    NamedTuple,
    /// A pydantic model.
    Model,
    Other,
}

/// What a class inherits.
#[derive(Debug)]
pub(super) struct Lineage<'a> {
    pub(super) kind: ClassKind,
    /// The class and its ancestors in this file, furthest first.
    pub(super) classes: Vec<&'a StmtClassDef>,
    /// The full names of ancestors outside the file.
    pub(super) outside: Vec<String>,
    /// Whether every ancestor is one whose fields are known.
    pub(super) is_complete: bool,
    /// Whether pydantic makes it, also when it is a dataclass.
    pub(super) is_pydantic: bool,
    /// The type that `RootModel[…]` stands for.
    pub(super) root: Option<&'a Expr>,
}

impl Lineage<'_> {
    pub(super) fn inherits(&self, names: &[&str]) -> bool {
        self.outside.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether it has one form for each direction, wherever it stands.
    pub(super) fn is_same_everywhere(&self) -> bool {
        self.is_pydantic || self.kind == ClassKind::Enumeration
    }
}

/// Longer than any chain of base classes; ends a circle of them.
const LONGEST_LINEAGE: usize = 16;

/// Bases that say nothing about the form of a value.
const FORMLESS: [&str; 6] = [
    "builtins.object",
    "abc.ABC",
    "typing.Generic",
    "typing.Protocol",
    "typing_extensions.Generic",
    "typing_extensions.Protocol",
];

impl<'a> Module<'a> {
    /// What a class inherits, found out once.
    pub(super) fn lineage(&self, class: &'a StmtClassDef) -> Rc<Lineage<'a>> {
        let place = std::ptr::from_ref(class).addr();
        if let Some(known) = self.lineages.borrow().get(&place) {
            return Rc::clone(known);
        }
        let mut lineage = Lineage {
            kind: ClassKind::Other,
            classes: Vec::new(),
            outside: Vec::new(),
            is_complete: true,
            is_pydantic: false,
            root: None,
        };
        self.climb(class, &mut lineage, LONGEST_LINEAGE);
        let lineage = Rc::new(lineage);
        self.lineages.borrow_mut().insert(place, Rc::clone(&lineage));
        lineage
    }

    fn climb(&self, class: &'a StmtClassDef, lineage: &mut Lineage<'a>, left: usize) {
        let bases = class.arguments.as_ref().map(|arguments| &*arguments.args).unwrap_or_default();
        for written in bases {
            // `Generic[T]` and `Box[int]` inherit as `Generic` and `Box` do.
            let base = written.as_subscript_expr().map_or(written, |generic| &generic.value);
            match self.resolve(base) {
                Named::Class(parent) if left > 0 && !lineage.classes.iter().any(|seen| std::ptr::eq(*seen, parent)) => {
                    self.climb(parent, lineage, left - 1);
                }
                Named::Outside(name) => {
                    match kind_of_base(&name) {
                        Some(kind) => {
                            lineage.kind = kind;
                            lineage.is_pydantic = kind == ClassKind::Model;
                        }
                        None => lineage.is_complete &= FORMLESS.contains(&name.as_str()),
                    }
                    if name == "pydantic.RootModel" {
                        lineage.root = written.as_subscript_expr().map(|generic| &*generic.slice);
                    }
                    lineage.outside.push(name);
                }
                _ => lineage.is_complete = false,
            }
        }
        if let Some(name) = self.dataclass_decorator(class)
            && matches!(lineage.kind, ClassKind::Other | ClassKind::Dataclass)
        {
            lineage.kind = ClassKind::Dataclass;
            lineage.is_pydantic = name.starts_with("pydantic.");
        }
        lineage.classes.push(class);
    }

    /// Whether a class itself carries the dataclass decorator, which is what makes its annotations fields.
    pub(super) fn is_dataclass(&self, class: &StmtClassDef) -> bool {
        self.dataclass_decorator(class).is_some()
    }

    fn dataclass_decorator(&self, class: &StmtClassDef) -> Option<String> {
        class.decorator_list.iter().find_map(|decorator| {
            let called = decorator.expression.as_call_expr().map(|call| &*call.func);
            let name = self.outside_name(called.unwrap_or(&decorator.expression))?;
            (name == "dataclasses.dataclass" || name == "pydantic.dataclasses.dataclass").then_some(name)
        })
    }

    /// Whether a class is an enumeration of texts, which can be keys of an object.
    pub(super) fn is_of_texts(&self, class: &'a StmtClassDef) -> bool {
        let lineage = self.lineage(class);
        lineage.kind == ClassKind::Enumeration
            && self.members(&lineage).is_some_and(|all| all.iter().all(|(_, value)| value.is_string()))
    }
}

fn kind_of_base(name: &str) -> Option<ClassKind> {
    Some(match name {
        "typing.TypedDict" | "typing_extensions.TypedDict" => ClassKind::TypedDict,
        "typing.NamedTuple" => ClassKind::NamedTuple,
        "pydantic.BaseModel" | "pydantic.main.BaseModel" | "pydantic.RootModel" => ClassKind::Model,
        _ if name.starts_with("enum.") => ClassKind::Enumeration,
        _ => return None,
    })
}

/// The keyword of a class statement: `class Options(TypedDict, total=False)`.
pub(super) fn class_keyword<'a>(class: &'a StmtClassDef, name: &str) -> Option<&'a Expr> {
    let keywords = class.arguments.as_ref().map(|arguments| &arguments.keywords)?;
    keywords.iter().find(|keyword| keyword.arg.as_ref().is_some_and(|arg| arg.as_str() == name)).map(|it| &it.value)
}
