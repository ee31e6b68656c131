//! `delete_file`

use std::io::ErrorKind;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spot::Spot;
use crate::builtin::{About, Builtin, Call, Roots, Stop};
use crate::config::declared_policy::Risk;
use crate::outcome::{Code, Fault};

pub(super) struct DeleteFile(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// The file; relative paths begin at the first folder that tools may reach.
    pub path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Deleted {
    /// The file that is gone.
    pub path: String,
}

impl Builtin for DeleteFile {
    type Params = Wanted;
    type Answer = Deleted;

    fn about(&self) -> About {
        About::new(
            "delete_file",
            "Delete one file, for good.\n\nOf a link the link is deleted, not what it leads to. Folders are refused.",
        )
        .risk("system_write", Risk::High)
        .timeout(Duration::from_secs(30))
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Deleted, Fault> {
        let roots = self.0.clone();
        call.blocking(move |stop| delete(&roots, &wanted, stop)).await
    }
}

fn delete(roots: &Roots, wanted: &Wanted, stop: &Stop) -> Result<Deleted, Fault> {
    let at = roots.locate(&wanted.path)?;
    let path = at.path();
    let folder = || Fault::new(Code::ToolError, format!("{} is a folder, and only files are deleted", path.display()));
    let spot = Spot::named(&at).map_err(|error| roots.refused(&path, &error))?;
    let _turn = spot.turn(stop).map_err(|error| roots.refused(&path, &error))?;
    if spot.folder.symlink_metadata(&spot.name).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(folder());
    }
    spot.folder.remove_file(&spot.name).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => folder(),
        _ => roots.refused(&path, &error),
    })?;
    Ok(Deleted { path: path.display().to_string() })
}
