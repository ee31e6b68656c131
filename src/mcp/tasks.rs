//! MCP tasks (extension `io.modelcontextprotocol/tasks`): a call that goes on without its request, as a background call. Its id names
//! the task for every client of the person, also after a restart.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorCode, JsonObject, RequestId, RequestMetaObject, TASKS_EXTENSION_ID, Task,
    TaskPayload, TaskStatus,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call::{Shape, Terms};
use super::lifecycle::Rules;
use super::message;
use super::open_requests::Running;
use super::rounds::Responses;
use super::session::{McpSession, Refused};
use super::task_questions::TaskQuestions;
use crate::call::{Begun, CallHandle, CallRequest};
use crate::config::task::TaskMode;
use crate::journal::{CallRow, State};
use crate::outcome::{Cancelled, Canceller, Fault, Metadata, Outcome};
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

/// What a subscription says of tasks.
#[derive(Deserialize)]
pub(super) struct ListensToTasks {
    #[serde(default)]
    notifications: TaskIds,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskIds {
    #[serde(default)]
    task_ids: Option<Vec<String>>,
}

impl ListensToTasks {
    /// Whether it asks for notifications of tasks.
    pub fn any(&self) -> bool {
        self.notifications.task_ids.is_some()
    }
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
        let knows = terms.rules == Rules::Modern && terms.knows_tasks;
        Ok(match (settings.task.value, knows) {
            (TaskMode::Required, false) => return Err(needs_tasks(&format!("the tool {}", tool.name))),
            (_, false) => None,
            (TaskMode::Yes | TaskMode::Required, true) => Some(Becomes::AtOnce),
            (TaskMode::No, true) => settings.task_after.as_ref().map(|after| Becomes::After(after.value)),
        })
    }

    /// Starts a call that becomes a task. Its listener answers the request if it ends before.
    pub fn start_task(
        self: &Arc<Self>,
        (id, number): (&RequestId, u64),
        request: CallRequest,
        responses: Option<Responses>,
        becomes: Becomes,
    ) {
        let (session, id) = (Arc::clone(self), id.clone());
        spawn(async move {
            let tool = request.tool.clone();
            match session.service().start_in_background(request).await {
                Ok(begun) => session.begun_task((&id, number), begun, responses, becomes),
                Err(fault) => session.refused_task((&id, number), tool, fault),
            }
        });
    }

    fn begun_task(
        self: &Arc<Self>,
        (id, number): (&RequestId, u64),
        begun: Begun,
        responses: Option<Responses>,
        becomes: Becomes,
    ) {
        let Some(handle) = begun.handle else {
            // Another request with its key has made it.
            let is_open = self.open_requests().lock().remove(id, number);
            if is_open {
                self.reply_task(id, &begun.id);
            }
            return;
        };
        if !self.open_requests().lock().has(id, number) {
            if !handle.has_ended() {
                handle.end(Cancelled::by(Canceller::Client));
            }
            return;
        }
        let call = handle.id().to_owned();
        self.begun(&handle, responses);
        self.open_requests().lock().set(id, number, Running::Call(handle));
        match becomes {
            Becomes::AtOnce => self.becomes_task(&call),
            Becomes::After(after) => self.becomes_task_after(id, number, after),
        }
    }

    fn refused_task(self: &Arc<Self>, (id, number): (&RequestId, u64), tool: String, fault: Fault) {
        let outcome = Outcome {
            call_id: String::new(),
            tool,
            ended: Err(fault),
            latency: Duration::ZERO,
            metadata: Metadata::default(),
        };
        self.answer(id, number, &Arc::new(outcome), Rules::Modern, &Shape::Tool);
    }

    /// Lets the call of a request become a task if it takes longer. A request that continues a call has as long.
    pub fn becomes_task_after(self: &Arc<Self>, id: &RequestId, number: u64, after: Duration) {
        let (session, id) = (Arc::downgrade(self), id.clone());
        spawn(async move {
            tokio::time::sleep(after).await;
            let Some(session) = session.upgrade() else { return };
            let call = session.open_requests().lock().background_call(&id, number);
            if let Some(call) = call {
                session.becomes_task(&call);
            }
        });
    }

    /// The open requests of a call end with its id, and the call goes on.
    fn becomes_task(&self, call: &str) {
        let taken = self.open_requests().lock().take_of(call);
        for (id, handle) in taken {
            if let Some(client) = handle.client() {
                client.detached();
            }
            self.reply_task(&id, call);
        }
    }

    fn reply_task(&self, id: &RequestId, call: &str) {
        let now = unix_ms();
        let task = self.task(call, TaskStatus::Working, [now, now]);
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
                let mut result = serde_json::to_value(task).unwrap_or_default();
                result["resultType"] = "complete".into();
                return Ok(message::result(&own, result));
            }
            session.steer(&method, params).await?;
            Ok(message::result(&own, json!({"resultType": "complete"})))
        })
    }

    /// How a task stands.
    async fn look_at(self: &Arc<Self>, call: &str) -> Result<DetailedTask, Refused> {
        let running = self.background_call(call);
        let row = self.service().kept(call).await.filter(|row| row.background);
        let is_final = row.as_ref().is_some_and(|row| row.state.is_some_and(State::is_final));
        let seen = || self.service().seen(call).filter(|seen| seen.background);
        match (row, running) {
            (Some(row), _) if is_final => Ok(self.ended_task(&row)),
            (row, Some(handle)) => {
                let now = unix_ms();
                let times = row.map_or([now, now], |row| [row.created_at, row.updated_at]);
                Ok(self.running_task(&handle, times))
            }
            // It waits to be run again, or another process runs it, or the store does not know its end yet.
            (Some(row), None) => {
                let task = self.task(call, TaskStatus::Working, [row.created_at, row.updated_at]);
                Ok(DetailedTask::new(task, TaskPayload::Working))
            }
            (None, None) => {
                let seen = seen().ok_or_else(|| unknown(call))?;
                let task = self.task(call, TaskStatus::Working, [seen.started_ms, unix_ms()]);
                Ok(DetailedTask::new(task, TaskPayload::Working))
            }
        }
    }

    fn background_call(&self, call: &str) -> Option<CallHandle> {
        self.service().running_anywhere(call).filter(CallHandle::is_background)
    }

    fn running_task(&self, handle: &CallHandle, times: [u64; 2]) -> DetailedTask {
        let questions = handle.client().map(|client| client.open_questions()).unwrap_or_default();
        let payload = match serde_json::from_value(Value::Object(questions.clone())) {
            Ok(input_requests) if !questions.is_empty() => TaskPayload::InputRequired { input_requests },
            _ => TaskPayload::Working,
        };
        DetailedTask::new(self.task(handle.id(), payload.status(), times), payload)
    }

    fn ended_task(self: &Arc<Self>, row: &CallRow) -> DetailedTask {
        let mut task = self.task(&row.id, TaskStatus::Completed, [row.created_at, row.updated_at]);
        if row.state == Some(State::Cancelled) {
            task.status_message.clone_from(&row.cancelled);
            return DetailedTask::new(task, TaskPayload::Cancelled);
        }
        let payload = match self.as_answered(&Arc::new(row.outcome())) {
            Ok(result) => TaskPayload::Completed { result },
            Err(error) => {
                task.status_message.clone_from(&row.error);
                TaskPayload::Failed { error }
            }
        };
        DetailedTask::new(task, payload)
    }

    /// The result or the error with which `tools/call` would have been answered.
    fn as_answered(self: &Arc<Self>, outcome: &Arc<Outcome>) -> Result<JsonObject, JsonObject> {
        #[derive(Deserialize)]
        struct Answer {
            result: Option<JsonObject>,
            error: Option<JsonObject>,
        }
        let line = self.plain_line(&RequestId::Number(0), outcome);
        let Answer { result, error } = serde_json::from_slice(&line).unwrap_or(Answer { result: None, error: None });
        result.ok_or_else(|| error.unwrap_or_default())
    }

    /// Passes answers on, or asks for the end of a task. Both may come late: then nothing is to be done.
    async fn steer(&self, method: &str, params: TaskParams) -> Result<(), Refused> {
        let TaskParams { task_id, input_responses } = params;
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
                row.ok_or_else(|| unknown(&task_id))?;
            }
        }
        Ok(())
    }
}

fn unknown(call: &str) -> Refused {
    ErrorData::invalid_params(format!("there is no task {call:?}, or it is not kept any more"), None)
}

/// The questions of a call that becomes a task.
pub(super) fn questions(becomes: Becomes) -> Arc<TaskQuestions> {
    TaskQuestions::new(becomes == Becomes::AtOnce)
}

/// What a request says, if its parameters fit.
pub(super) fn listens_to_tasks(params: Option<&RawValue>) -> bool {
    message::params::<ListensToTasks>(params).is_ok_and(|listens| listens.any())
}
