//! What `CPython`'s compiler refuses though the grammar admits it: `return` outside of a function, `break` outside of a
//! loop, an argument twice. The parser's own checker knows these rules; here it is led through the tree.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_python_parser::semantic_errors::{SemanticSyntaxChecker, SemanticSyntaxError};

use super::place::{Kind, Place};

/// The first thing in a module that its compiler would stumble over. Names that `nonlocal` finds no binding for are not
/// looked for.
pub(super) fn refused<'a>(source: &'a str, body: &'a [Stmt]) -> Option<SemanticSyntaxError> {
    let mut walk = Walk { checker: SemanticSyntaxChecker::new(), place: Place::in_module(source, body) };
    walk.visit_body(body);
    walk.place.found()
}

struct Walk<'a> {
    checker: SemanticSyntaxChecker,
    place: Place<'a>,
}

impl<'a> Walk<'a> {
    fn within(&mut self, kind: Kind<'a>, body: &'a [Stmt], walk: impl FnOnce(&mut Self)) {
        let in_loop = self.place.enter(kind, body);
        walk(self);
        self.place.leave(in_loop);
    }

    fn function(&mut self, function: &'a StmtFunctionDef) {
        function.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        function.type_params.iter().for_each(|params| self.visit_type_params(params));
        self.visit_parameters(&function.parameters);
        function.returns.iter().for_each(|hint| self.visit_annotation(hint));
        let kind = Kind::Function { is_async: function.is_async, parameters: &function.parameters };
        self.within(kind, &function.body, |walk| walk.visit_body(&function.body));
    }

    fn class(&mut self, class: &'a StmtClassDef) {
        class.decorator_list.iter().for_each(|decorator| self.visit_decorator(decorator));
        class.type_params.iter().for_each(|params| self.visit_type_params(params));
        class.arguments.iter().for_each(|arguments| self.visit_arguments(arguments));
        self.within(Kind::Class, &class.body, |walk| walk.visit_body(&class.body));
    }

    fn repeated(&mut self, body: &'a [Stmt], otherwise: &'a [Stmt]) {
        let in_loop = std::mem::replace(&mut self.place.in_loop, true);
        self.visit_body(body);
        self.place.in_loop = in_loop;
        self.visit_body(otherwise);
    }

    fn comprehension(&mut self, kind: Kind<'a>, generators: &'a [Comprehension], elements: [Option<&'a Expr>; 2]) {
        // The first sequence is looked up outside.
        if let Some(first) = generators.first() {
            self.visit_expr(&first.iter);
        }
        self.within(kind, &[], |walk| {
            for (index, generator) in generators.iter().enumerate() {
                walk.visit_expr(&generator.target);
                if index > 0 {
                    walk.visit_expr(&generator.iter);
                }
                generator.ifs.iter().for_each(|test| walk.visit_expr(test));
            }
            elements.into_iter().flatten().for_each(|element| walk.visit_expr(element));
        });
    }
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.checker.visit_stmt(statement, &self.place);
        match statement {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::For(each) => {
                self.visit_expr(&each.iter);
                self.visit_expr(&each.target);
                self.repeated(&each.body, &each.orelse);
            }
            Stmt::While(again) => {
                self.visit_expr(&again.test);
                self.repeated(&again.body, &again.orelse);
            }
            _ => walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        self.checker.visit_expr(expression, &self.place);
        let looped = |generators: &'a [Comprehension]| Kind::Comprehension {
            is_async: generators.iter().any(|generator| generator.is_async),
        };
        match expression {
            Expr::Lambda(lambda) => {
                lambda.parameters.iter().for_each(|parameters| self.visit_parameters(parameters));
                let kind = Kind::Lambda(lambda.parameters.as_deref());
                self.within(kind, &[], |walk| walk.visit_expr(&lambda.body));
            }
            Expr::ListComp(list) => {
                self.comprehension(looped(&list.generators), &list.generators, [Some(&*list.elt), None]);
            }
            Expr::SetComp(set) => self.comprehension(looped(&set.generators), &set.generators, [Some(&*set.elt), None]),
            Expr::DictComp(dict) => {
                let elements = [dict.key.as_deref(), Some(&*dict.value)];
                self.comprehension(looped(&dict.generators), &dict.generators, elements);
            }
            Expr::Generator(all) => self.comprehension(Kind::Generator, &all.generators, [Some(&*all.elt), None]),
            _ => walk_expr(self, expression),
        }
    }
}
