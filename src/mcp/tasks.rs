//! MCP tasks (extension `io.modelcontextprotocol/tasks`): a call that goes on without its request, as a background call. Its id names
//! the task for every client of the person, also after a restart.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CreateTaskResult, ErrorCode, RequestId, RequestMetaObject, TASKS_EXTENSION_ID, Task, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call::{Shape, Terms};
use super::lifecycle::Rules;
use super::message;
use super::session::{McpSession, Refused};
use crate::call::CallHandle;
use crate::config::journal::Bodies;
use crate::config::task::TaskMode;
use crate::journal::{CallRow, State};
use crate::outcome::{Cancelled, Canceller, Outcome};
use crate::telemetry::{rfc3339, spawn, unix_ms};

/// How often a client should ask: soon at first, then less often.
const POLL: [(u64, u64); 2] = [(10_000, 500), (60_000, 2000)];
const POLL_LATER: u64 = 5000;

/// How a call becomes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Becomes {
    /// At once.
    AtOnce,
    /// If it takes longer.
    After(Duration),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    task_id: String,
    #[serde(default)]
    input_responses: Map<String, Value>,
}

/// How a task stands: the answer to `tasks/get`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    result_type: &'static str,
    #[serde(flatten)]
    task: Task,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
}

impl Standing {
    fn of(task: Task) -> Self {
        Self { result_type: "complete", task, input_requests: None, result: None, error: None }
    }
}

/// As a request would have been answered: passed on as text, so that long integers stay exact.
#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<Box<RawValue>>,
}

/// What a subscription says of tasks.
#[derive(Deserialize)]
struct ListensToTasks {
    #[serde(default)]
    notifications: TaskIds,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskIds {
    #[serde(default)]
    task_ids: Option<Vec<String>>,
}

/// Whether a client knows tasks.
pub(super) fn knows_tasks(meta: &RequestMetaObject) -> bool {
    meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// The error for a client that does not.
pub(super) fn needs_tasks(what: &str) -> Refused {
    let needed = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION_ID: {}}}});
    let text = format!("{what} needs a client with the extension {TASKS_EXTENSION_ID}");
    ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, text, Some(needed))
}

impl McpSession {
    /// Whether calls may become tasks.
    pub fn offers_tasks(&self) -> bool {
        self.service().has_background()
    }

    /// How a call becomes a task, if it does, or why it cannot be made.
    pub fn becomes(&self, name: &str, shape: &Shape, terms: &Terms) -> Result<Option<Becomes>, Refused> {
        if !matches!(shape, Shape::Tool) || !self.offers_tasks() {
            return Ok(None);
        }
        let catalogue = self.service().registry.catalogue();
        let Ok(tool) = catalogue.resolve(name) else { return Ok(None) };
        let settings = &tool.entry.settings;
        // The result of a task must be kept.
        let is_kept = tool.entry.config.journal.bodies.value != Bodies::None;
        let knows = terms.rules == Rules::Modern && terms.knows_tasks && is_kept;
        Ok(match (settings.task.value, knows) {
            (TaskMode::Required, false) => return Err(needs_tasks(&format!("the tool {}", tool.name))),
            (_, false) => None,
            (TaskMode::Yes | TaskMode::Required, true) => Some(Becomes::AtOnce),
            (TaskMode::No, true) => settings.task_after.as_ref().map(|after| Becomes::After(after.value)),
        })
    }

    /// Lets the call of a request become a task. A request that continues a call has as long as the first.
    pub fn will_become_task(self: &Arc<Self>, id: &RequestId, number: u64, becomes: Becomes) {
        let (session, id) = (Arc::downgrade(self), id.clone());
        let call = self.open_requests().lock().call_of(&id, number);
        let Some(call) = call else { return };
        spawn(async move {
            if let Becomes::After(after) = becomes {
                let ended = tokio::time::timeout(after, call.outcome()).await;
                if ended.is_ok() {
                    return;
                }
            }
            // A question may have answered the request.
            let has_request = |session: &Self| session.open_requests().lock().has(&id, number);
            let Some(session) = session.upgrade().filter(|session| has_request(session)) else { return };
            if session.service().detach(&call).await {
                session.becomes_task(&call);
            }
        });
    }

    /// The open requests of a call end with its id, and the call goes on. What it asks from now on waits for `tasks/get`.
    fn becomes_task(self: &Arc<Self>, call: &CallHandle) {
        if let Some(client) = call.client() {
            client.detached();
        }
        self.move_questions(call.id());
        let taken = self.open_requests().lock().take_of(call.id());
        call.unheard();
        for (id, _) in taken {
            self.reply_task(&id, call.id());
        }
    }

    /// Answers a request with the id of a task.
    pub fn reply_task(&self, id: &RequestId, call: &str) {
        let now = unix_ms();
        let created = self.service().seen(call).map_or(now, |seen| seen.started_ms);
        let task = self.task(call, TaskStatus::Working, [created, now]);
        self.reply(id, &message::result(id, CreateTaskResult::new(task)));
    }

    fn task(&self, call: &str, status: TaskStatus, [created, updated]: [u64; 2]) -> Task {
        let age = unix_ms().saturating_sub(created);
        let poll = POLL.iter().find(|(until, _)| age < *until).map_or(POLL_LATER, |(_, pause)| *pause);
        let kept = self.service().config().journal.keep.value.as_millis();
        let task = Task::new(call, status, rfc3339(created), rfc3339(updated)).with_poll_interval_ms(poll);
        task.with_ttl_ms(u64::try_from(kept).unwrap_or(u64::MAX))
    }

    /// Answers a request about a task.
    pub fn on_task(
        self: &Arc<Self>,
        id: &RequestId,
        method: &str,
        meta: &RequestMetaObject,
        params: TaskParams,
    ) -> Result<(), Refused> {
        if !knows_tasks(meta) {
            return Err(needs_tasks(method));
        }
        let (session, own, method) = (Arc::clone(self), id.clone(), method.to_owned());
        self.answer_later(id, async move {
            if method == "tasks/get" {
                let task = session.look_at(&params.task_id).await?;
                return Ok(message::result(&own, task));
            }
            session.steer(&method, params).await?;
            Ok(message::result(&own, json!({"resultType": "complete"})))
        })
    }

    /// How a task stands.
    async fn look_at(self: &Arc<Self>, call: &str) -> Result<Standing, Refused> {
        let running = self.background_call(call);
        let row = self.service().kept(call).await.filter(|row| row.background);
        let is_final = row.as_ref().is_some_and(|row| row.state.is_some_and(State::is_final));
        let seen = || self.service().seen(call).filter(|seen| seen.background);
        match (row, running) {
            (Some(row), _) if is_final => Ok(self.ended_task(&row)),
            (row, Some(handle)) => {
                let now = unix_ms();
                let created = self.service().seen(call).map_or(now, |seen| seen.started_ms);
                let times = row.map_or([created, now], |row| [row.created_at, row.updated_at]);
                Ok(self.running_task(&handle, times))
            }
            // It waits to be run again, or another process runs it.
            (Some(row), None) => {
                Ok(Standing::of(self.task(call, TaskStatus::Working, [row.created_at, row.updated_at])))
            }
            (None, None) => {
                let seen = seen().ok_or_else(|| unknown(call))?;
                Ok(Standing::of(self.task(call, TaskStatus::Working, [seen.started_ms, unix_ms()])))
            }
        }
    }

    fn background_call(&self, call: &str) -> Option<CallHandle> {
        self.service().running_anywhere(call).filter(CallHandle::is_background)
    }

    fn running_task(&self, handle: &CallHandle, times: [u64; 2]) -> Standing {
        let questions = handle.client().map(|client| client.open_questions()).unwrap_or_default();
        let status = if questions.is_empty() { TaskStatus::Working } else { TaskStatus::InputRequired };
        let input_requests = (!questions.is_empty()).then_some(questions);
        Standing { input_requests, ..Standing::of(self.task(handle.id(), status, times)) }
    }

    fn ended_task(self: &Arc<Self>, row: &CallRow) -> Standing {
        let mut task = self.task(&row.id, TaskStatus::Completed, [row.created_at, row.updated_at]);
        if row.state == Some(State::Cancelled) {
            task.status = TaskStatus::Cancelled;
            task.status_message.clone_from(&row.cancelled);
            return Standing::of(task);
        }
        let Answer { result, error } = self.as_answered(&Arc::new(row.outcome()));
        if result.is_none() {
            task.status = TaskStatus::Failed;
            task.status_message.clone_from(&row.error);
        }
        Standing { result, error, ..Standing::of(task) }
    }

    /// The result or the error with which `tools/call` would have been answered.
    fn as_answered(self: &Arc<Self>, outcome: &Arc<Outcome>) -> Answer {
        let line = self.plain_line(&RequestId::Number(0), outcome);
        serde_json::from_slice(&line).unwrap_or_default()
    }

    /// Passes answers on, or asks for the end of a task. Both may come late: then nothing is to be done.
    async fn steer(&self, method: &str, params: TaskParams) -> Result<(), Refused> {
        let TaskParams { task_id, input_responses } = params;
        if let Some(key) = input_responses.iter().find_map(|(key, answer)| (!answer.is_object()).then_some(key)) {
            let text = format!("inputResponses.{key} must be an object, the client's result");
            return Err(ErrorData::invalid_params(text, None));
        }
        match self.background_call(&task_id) {
            Some(handle) if method == "tasks/cancel" => handle.end(Cancelled::by(Canceller::Client)),
            Some(handle) => {
                if let Some(client) = handle.client() {
                    client.answered(input_responses);
                }
            }
            None if self.service().seen(&task_id).is_some_and(|seen| seen.background) => {}
            None => {
                let row = self.service().kept(&task_id).await.filter(|row| row.background);
                let row = row.ok_or_else(|| unknown(&task_id))?;
                if !row.state.is_some_and(State::is_final) {
                    self.steer_elsewhere(method, &task_id).await?;
                }
            }
        }
        Ok(())
    }

    /// A task that this process does not run: its end is asked for in the store, where whoever runs it looks.
    async fn steer_elsewhere(&self, method: &str, call: &str) -> Result<(), Refused> {
        if method == "tasks/cancel" && self.service().ask_end(call, &Cancelled::by(Canceller::Client)).await {
            return Ok(());
        }
        let text =
            format!("the task {call} runs in another hostler, or waits to be run again; try again where it runs");
        Err(ErrorData::internal_error(text, None))
    }
}

fn unknown(call: &str) -> Refused {
    ErrorData::invalid_params(format!("there is no task {call:?}, or it is no longer kept"), None)
}

/// Whether a subscription asks for notifications of tasks.
pub(super) fn listens_to_tasks(params: Option<&RawValue>) -> bool {
    message::params::<ListensToTasks>(params).is_ok_and(|listens| listens.notifications.task_ids.is_some())
}
