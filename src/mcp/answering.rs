//! Requests that are answered later: calls, subscriptions, and answers that take a while.

use std::sync::Arc;

use rmcp::model::{ErrorData, RequestId, SubscriptionFilter};

use super::call::{self, CallParams, CallReply, Shape, Terms};
use super::client::McpClient;
use super::large::{self, TooLong};
use super::lifecycle::Rules;
use super::message;
use super::notifier::{Gate, Notifier};
use super::open_requests::Running;
use super::result::{self, Form};
use super::round_trips;
use super::rounds::Continuation;
use super::session::{McpSession, Refused};
use super::task_questions::TaskQuestions;
use super::{prompts, resources, subscription};
use crate::call::{CallRequest, ClientFeatures};
use crate::config::tool::LargeResult;
use crate::outcome::Outcome;
use crate::telemetry::carried;

impl McpSession {
    /// Starts a call, which is answered in this shape.
    pub fn call(self: &Arc<Self>, id: &RequestId, params: CallParams, shape: Shape) -> Result<(), Refused> {
        let CallParams { name, arguments, responses, state, meta } = params;
        let (key, progress) = (call::key(&meta), meta.get_progress_token());
        let key = key.map_err(|what| ErrorData::invalid_params(what, None))?;
        let terms = self.terms(meta)?;
        let becomes = self.becomes(&name, &shape, &terms)?;
        let Terms { rules, caller, client, level, abilities, .. } = terms;
        let responses = responses.filter(|_| rules == Rules::Modern);
        responses.as_ref().map_or(Ok(()), round_trips::check)?;
        let number = self.open_requests().lock().accept(id)?;
        let (outbox, open) = (self.outbox(), self.open_requests());
        let gate = || Gate { outbox: outbox.clone(), open: Arc::clone(open), id: id.clone(), number };
        let notifier = Notifier::new(gate, progress, level, &name);
        let (role, method) = (shape.role(), shape.method());
        let reply = CallReply { session: Arc::clone(self), id: id.clone(), number, rules, shape, notifier };
        if let Some(state) = state.filter(|_| rules == Rules::Modern) {
            let given = arguments.unwrap_or_default();
            let (tool, arguments) = match self.service().prepared(role, &name, given.clone()) {
                Ok((tool, arguments)) => (tool, serde_json::from_str(arguments.get()).unwrap_or_default()),
                Err(_) => (name, serde_json::Value::Object(given)),
            };
            let request = Continuation { tool, arguments };
            let continued = self.continue_call(&request, &state, responses.unwrap_or_default(), reply);
            continued.inspect_err(|_| {
                self.open_requests().lock().remove(id, number);
            })?;
            if let Some(becomes) = becomes {
                self.will_become_task(id, number, becomes);
            }
            return Ok(());
        }
        // Every field is named: the defaults would allocate.
        let request = CallRequest {
            caller,
            key,
            needs_journal: true,
            method: Some(method),
            is_served: true,
            role,
            listener: Arc::new(reply),
            client,
            ..CallRequest::new(name, arguments.unwrap_or_default())
        };
        let questions = becomes.map(|_| TaskQuestions::new());
        let request = match &questions {
            Some(task) => {
                let client = abilities.map(|abilities| {
                    let (session, task) = (Arc::downgrade(self), Some(Arc::clone(task)));
                    Arc::new(McpClient { session, abilities, rules, task }) as Arc<dyn ClientFeatures>
                });
                CallRequest { client, may_detach: true, ..request }
            }
            None => request,
        };
        self.call_session().start_with(request, |handle| {
            if rules == Rules::Modern {
                self.begun(&handle, responses);
            }
            if let Some(questions) = questions {
                self.round_trips().lock().will_become_task(handle.id(), questions);
            }
            self.open_requests().lock().set(id, number, Running::Call(handle));
        });
        if let Some(becomes) = becomes {
            self.will_become_task(id, number, becomes);
        }
        Ok(())
    }

    /// Answers a call, unless the client cancelled it.
    pub fn answer(self: &Arc<Self>, id: &RequestId, number: u64, outcome: &Arc<Outcome>, rules: Rules, shape: &Shape) {
        let (is_wanted, is_last) = {
            let mut running = self.open_requests().lock();
            (running.remove(id, number), running.is_empty())
        };
        if !is_wanted {
            return;
        }
        let most = self.service().config().mcp.max_result.0;
        let line = match shape {
            Shape::Tool => match self.answer_line((id, number), outcome, rules, most) {
                Some(line) => line,
                None => return,
            },
            Shape::Resource(shape) => resources::answer(id, outcome, rules, shape, most),
            Shape::Prompt { description } => prompts::answer(id, outcome, rules, description.as_deref(), most),
        };
        // While other calls run, answers are likely to be written together.
        if is_last { self.reply_now(id, &line) } else { self.reply(id, &line) }
    }

    /// The answer to `tools/call` of a client of today, without links to what is too large.
    pub fn plain_line(&self, id: &RequestId, outcome: &Outcome) -> Vec<u8> {
        let most = self.service().config().mcp.max_result.0;
        let tool = || self.service().registry.catalogue().resolve(&outcome.tool).ok().cloned();
        let is_promised = || tool().is_some_and(|tool| tool.advertised().is_some());
        let form = Form { rules: Rules::Modern, envelope: self.has_envelope(), is_promised: &is_promised };
        let line = result::line(id, outcome, &outcome.metadata, &form);
        if line.len() <= most {
            return line;
        }
        let too_long = TooLong { length: Some(line.len()), most, large: LargeResult::Error };
        large::line(id, outcome, &form, &too_long, self.results())
    }

    /// The answer to `tools/call`; `None` if a thread makes and sends it, because much of it is stored.
    fn answer_line(
        self: &Arc<Self>,
        (id, number): (&RequestId, u64),
        outcome: &Arc<Outcome>,
        rules: Rules,
        most: usize,
    ) -> Option<Vec<u8>> {
        let tool = || self.service().registry.catalogue().resolve(&outcome.tool).ok().cloned();
        let is_promised = || tool().is_some_and(|tool| tool.advertised().is_some());
        let form = Form { rules, envelope: self.has_envelope(), is_promised: &is_promised };
        let large = || tool().map_or(LargeResult::Error, |tool| tool.entry.settings.large.value);
        let mut length = None;
        if !large::is_too_long(outcome, most) || large() == LargeResult::Error {
            let line = result::line(id, outcome, &outcome.metadata, &form);
            if line.len() <= most {
                return Some(line);
            }
            length = Some(line.len());
        }
        let too_long = TooLong { length, most, large: large() };
        if too_long.large == LargeResult::Link && outcome.ended.is_ok() {
            let answer = large::send_stored(Arc::clone(self), id.clone(), Arc::clone(outcome), &form, too_long);
            self.spawn(id, number, answer);
            return None;
        }
        Some(large::line(id, outcome, &form, &too_long, self.results()))
    }

    pub fn subscribe(self: &Arc<Self>, id: &RequestId, requested: SubscriptionFilter) -> Result<(), Refused> {
        let number = self.open_requests().lock().accept(id)?;
        let listen = subscription::listen(Arc::clone(self), id.clone(), requested);
        self.spawn(id, number, listen);
        Ok(())
    }

    /// Answers a request with a line that takes a while, unless the client cancels it.
    pub fn answer_later(
        self: &Arc<Self>,
        id: &RequestId,
        line: impl Future<Output = Result<Vec<u8>, Refused>> + Send + 'static,
    ) -> Result<(), Refused> {
        let number = self.open_requests().lock().accept(id)?;
        let (session, own) = (Arc::clone(self), id.clone());
        let answer = async move {
            let line = line.await.unwrap_or_else(|error| message::error(&own, &error));
            if session.open_requests().lock().remove(&own, number) {
                session.reply(&own, &line);
            }
        };
        self.spawn(id, number, answer);
        Ok(())
    }

    pub fn spawn(&self, id: &RequestId, number: u64, task: impl Future<Output = ()> + Send + 'static) {
        let running = {
            let mut open = self.tasks().lock();
            // Cancelled ones would stay in the set until the session ends.
            while open.try_join_next().is_some() {}
            open.spawn(carried(task))
        };
        self.open_requests().lock().set(id, number, Running::Task(running));
    }
}
