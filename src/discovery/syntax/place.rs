//! Where in a module a walk is, for the parser's checker of what the compiler refuses.

use std::cell::RefCell;

use ruff_python_ast::statement_visitor::{StatementVisitor, walk_stmt};
use ruff_python_ast::{Identifier, Parameters, PythonVersion, Stmt};
use ruff_python_parser::semantic_errors::{LazyImportContext, SemanticSyntaxContext, SemanticSyntaxError};
use ruff_text_size::{Ranged, TextRange};

/// The scopes around a node, and what was found wrong so far.
pub(super) struct Place<'a> {
    source: &'a str,
    /// Most files declare nothing `global`, and are not searched for it.
    may_declare: bool,
    /// From the module inwards.
    scopes: Vec<Scope<'a>>,
    pub(super) in_loop: bool,
    found: RefCell<Option<SemanticSyntaxError>>,
}

struct Scope<'a> {
    kind: Kind<'a>,
    /// The names that it declares `global`, anywhere in it.
    globals: Vec<&'a Identifier>,
}

#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Module,
    Class,
    Function {
        is_async: bool,
        parameters: &'a Parameters,
    },
    Lambda(Option<&'a Parameters>),
    /// A list, set or dict made in a loop within an expression.
    Comprehension {
        is_async: bool,
    },
    Generator,
}

struct Globals<'a>(Vec<&'a Identifier>);

impl<'a> StatementVisitor<'a> for Globals<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Global(global) => self.0.extend(&global.names),
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            _ => walk_stmt(self, statement),
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn in_module(source: &'a str, body: &'a [Stmt]) -> Self {
        let may_declare = source.contains("global");
        let mut place = Self { source, may_declare, scopes: Vec::new(), in_loop: false, found: RefCell::default() };
        place.enter(Kind::Module, body);
        place
    }

    /// Enters a scope; [`Place::leave`] wants what this gives.
    pub(super) fn enter(&mut self, kind: Kind<'a>, body: &'a [Stmt]) -> bool {
        let mut globals = Globals(Vec::new());
        if self.may_declare {
            globals.visit_body(body);
        }
        self.scopes.push(Scope { kind, globals: globals.0 });
        std::mem::replace(&mut self.in_loop, false)
    }

    pub(super) fn leave(&mut self, in_loop: bool) {
        self.scopes.pop();
        self.in_loop = in_loop;
    }

    /// The first thing that was found wrong.
    pub(super) fn found(self) -> Option<SemanticSyntaxError> {
        self.found.into_inner()
    }

    /// From the innermost scope outwards.
    fn kinds(&self) -> impl Iterator<Item = Kind<'a>> {
        self.scopes.iter().rev().map(|scope| scope.kind)
    }

    fn innermost(&self) -> Kind<'a> {
        self.kinds().next().unwrap_or(Kind::Module)
    }
}

impl SemanticSyntaxContext for Place<'_> {
    fn future_annotations_or_stub(&self) -> bool {
        false
    }

    fn lazy_import_context(&self) -> Option<LazyImportContext> {
        None
    }

    /// What only later versions refuse may run on the one that a tool file gets.
    fn python_version(&self) -> PythonVersion {
        PythonVersion::PY313
    }

    fn source(&self) -> &str {
        self.source
    }

    fn global(&self, name: &str) -> Option<TextRange> {
        let globals = &self.scopes.last()?.globals;
        globals.iter().find(|global| global.as_str() == name).map(Ranged::range)
    }

    fn has_nonlocal_binding(&self, _: &str) -> bool {
        true
    }

    fn in_async_context(&self) -> bool {
        let decides = |kind| match kind {
            Kind::Function { is_async, .. } => Some(is_async),
            Kind::Class | Kind::Lambda(_) => Some(false),
            Kind::Module | Kind::Comprehension { .. } | Kind::Generator => None,
        };
        self.kinds().find_map(decides).unwrap_or_default()
    }

    fn in_await_allowed_context(&self) -> bool {
        let decides = |kind| match kind {
            Kind::Function { .. } | Kind::Lambda(_) | Kind::Generator => Some(true),
            Kind::Class => Some(false),
            Kind::Module | Kind::Comprehension { .. } => None,
        };
        self.kinds().find_map(decides).unwrap_or_default()
    }

    fn in_yield_allowed_context(&self) -> bool {
        self.in_function_scope()
    }

    fn in_sync_comprehension(&self) -> bool {
        self.kinds().any(|kind| matches!(kind, Kind::Comprehension { is_async: false }))
    }

    fn in_class_body_comprehension(&self) -> bool {
        let mut around = self.kinds().skip_while(|kind| matches!(kind, Kind::Comprehension { .. } | Kind::Generator));
        matches!(around.next(), Some(Kind::Class))
    }

    fn in_module_scope(&self) -> bool {
        matches!(self.innermost(), Kind::Module)
    }

    fn in_function_scope(&self) -> bool {
        matches!(self.innermost(), Kind::Function { .. } | Kind::Lambda(_))
    }

    fn in_generator_context(&self) -> bool {
        let is_looped = |kind: &Kind<'_>| matches!(kind, Kind::Comprehension { .. } | Kind::Generator);
        self.kinds().take_while(is_looped).any(|kind| matches!(kind, Kind::Generator))
    }

    fn in_notebook(&self) -> bool {
        false
    }

    fn report_semantic_error(&self, error: SemanticSyntaxError) {
        let mut found = self.found.borrow_mut();
        if found.as_ref().is_none_or(|first| error.start() < first.start()) {
            *found = Some(error);
        }
    }

    fn in_loop_context(&self) -> bool {
        self.in_loop
    }

    fn is_bound_parameter(&self, name: &str) -> bool {
        match self.innermost() {
            Kind::Function { parameters, .. } | Kind::Lambda(Some(parameters)) => parameters.includes(name),
            _ => false,
        }
    }
}
