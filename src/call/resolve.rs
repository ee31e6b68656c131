//! From a name and arguments to a tool and what its worker gets, or the fault that says why not.

use std::sync::Arc;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::request::Arguments;
use super::service::CallService;
use super::validate;
use crate::discovery::{SourceId, Status};
use crate::outcome::{Code, Details, Fault};
use crate::registry::{NotFound, RoleKind, SchemaProgress, Tool};

impl CallService {
    /// The tool of that name. Waits while an executable that may provide it is being described.
    pub(crate) async fn find_asked(&self, role: RoleKind, name: &str) -> Result<Arc<Tool>, Fault> {
        match self.find(role, name) {
            // The new version may have other functions.
            Ok(tool) if tool.entry.file.status == Status::Unasked => {
                self.registry.asked().await;
                self.find(role, name)
            }
            Err(fault) if fault.code == Code::ToolNotFound && self.registry.asking() != SchemaProgress::NotStarted => {
                self.registry.asked().await;
                self.find(role, name)
            }
            found => found,
        }
    }

    /// The tool of that name in its file's current version.
    pub(super) fn find(&self, role: RoleKind, name: &str) -> Result<Arc<Tool>, Fault> {
        self.registry.find_as(role, name).map_err(|missing| match missing {
            NotFound::Broken(source, reason) => broken_fault(name, &source, &reason),
            NotFound::Unknown { near, advice } => not_found_fault(name, near, &advice),
        })
    }

    /// A tool's full name, and arguments as its worker would get them.
    pub fn prepared(&self, role: RoleKind, name: &str, arguments: Arguments) -> Result<(String, Box<RawValue>), Fault> {
        let tool = self.find(role, name)?;
        Ok((tool.name.clone(), prepare(&tool, Value::Object(arguments))?))
    }
}

/// Checks a call before it runs, and serializes its arguments.
pub(super) fn prepare(tool: &Tool, mut arguments: Value) -> Result<Box<RawValue>, Fault> {
    if let Some(reason) = tool.entry.broken() {
        return Err(broken_fault(&tool.name, &tool.entry.file.source(), &reason));
    }
    if tool.settings.validate.value {
        validate::arguments(tool, &mut arguments)?;
    }
    to_raw_value(&arguments).map_err(|error| {
        Fault::new(Code::InvalidParams, format!("the arguments of {} are not JSON: {error}", tool.name))
    })
}

fn broken_fault(name: &str, source: &SourceId, reason: &str) -> Fault {
    let is_python = matches!(source, SourceId::Python(_));
    let code = if is_python { Code::StartupFailed } else { Code::CommandNotFound };
    Fault::new(code, format!("{name} cannot be called: {source} is broken: {reason}"))
}

fn not_found_fault(name: &str, near: Vec<String>, advice: &str) -> Fault {
    let details = Details { near, ..Details::default() };
    Fault::new(Code::ToolNotFound, format!("there is no tool {name}; {advice}")).with(details)
}
