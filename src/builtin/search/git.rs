//! `git_status`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::repository::{LIMIT, Repository};
use crate::builtin::{About, Builtin, Call, Roots};
use crate::config::declared_policy::Risk;
use crate::config::tool::Effects;
use crate::outcome::Fault;

pub(super) struct GitStatus(pub Roots);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// A folder of the repository; relative paths begin at the first folder that tools may reach, which `.` is.
    #[serde(default = "crate::builtin::here")]
    pub path: String,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Status {
    /// The branch, unless the head is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit, unless there is none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The branch it follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// How many commits it is ahead of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    /// How many behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// Whether nothing is changed and nothing is new.
    pub clean: bool,
    /// What is to be committed.
    pub staged: Vec<Changed>,
    /// What is changed and not to be committed.
    pub unstaged: Vec<Changed>,
    /// What git does not know.
    pub untracked: Vec<String>,
    /// What two sides changed differently.
    pub conflicts: Vec<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Changed {
    /// The file, from the top of the repository.
    pub path: String,
    /// What became of it.
    pub change: String,
    /// Where it was before, where it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Builtin for GitStatus {
    type Params = Wanted;
    type Answer = Status;

    fn about(&self) -> About {
        About::new(
            "git_status",
            "Say what git says of a folder: branch, commit, what is changed, staged, new or in conflict.",
        )
        .effects(Effects::Pure)
        .risk("read_only", Risk::Low)
        .timeout(LIMIT)
    }

    async fn call(&self, wanted: Wanted, call: Call) -> Result<Status, Fault> {
        let printed = Repository::at(&self.0, &wanted.path, &call).await?.status().await?;
        Ok(read(&String::from_utf8_lossy(&printed)))
    }
}

/// What `git status --porcelain=v2 --branch -z` prints.
pub(super) fn read(printed: &str) -> Status {
    let mut status = Status::default();
    let mut fields = printed.split('\0').filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        let (kind, rest) = field.split_once(' ').unwrap_or((field, ""));
        match kind {
            "#" => head(&mut status, rest),
            "1" => changed(&mut status, rest, 7, None),
            "2" => {
                let from = fields.next();
                changed(&mut status, rest, 8, from);
            }
            "u" => status.conflicts.extend(rest.splitn(10, ' ').nth(9).map(str::to_owned)),
            "?" => status.untracked.push(rest.to_owned()),
            _ => {}
        }
    }
    let nothing = [status.staged.len(), status.unstaged.len(), status.untracked.len(), status.conflicts.len()];
    status.clean = nothing == [0; 4];
    status
}

fn head(status: &mut Status, line: &str) {
    match line.split_once(' ') {
        Some(("branch.oid", oid)) => status.commit = Some(oid.to_owned()).filter(|oid| oid != "(initial)"),
        Some(("branch.head", name)) => status.branch = Some(name.to_owned()).filter(|name| name != "(detached)"),
        Some(("branch.upstream", name)) => status.upstream = Some(name.to_owned()),
        Some(("branch.ab", counts)) => {
            let mut counts = counts.split(' ').map(|count| count.trim_start_matches(['+', '-']).parse().ok());
            (status.ahead, status.behind) = (counts.next().flatten(), counts.next().flatten());
        }
        _ => {}
    }
}

/// One entry: `XY`, then so many fields, the last of which is the path.
fn changed(status: &mut Status, line: &str, fields: usize, from: Option<&str>) {
    let mut words = line.splitn(fields + 1, ' ');
    let marks: Vec<char> = words.next().unwrap_or_default().chars().collect();
    let Some(path) = words.nth(fields - 1) else { return };
    for (mark, list) in marks.into_iter().zip([&mut status.staged, &mut status.unstaged]) {
        let change = match mark {
            'M' => "modified",
            'T' => "type changed",
            'A' => "added",
            'D' => "deleted",
            'R' => "renamed",
            'C' => "copied",
            _ => continue,
        };
        list.push(Changed { path: path.to_owned(), change: change.to_owned(), from: from.map(str::to_owned) });
    }
}
