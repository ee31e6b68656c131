//! Questions of a call that is a task: they wait until the client asks for the task, and are answered by `tasks/update`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

/// The questions of one call.
#[derive(Default)]
pub(super) struct TaskQuestions {
    /// Whether the call is a task by now. Before, its questions are answers of its request.
    is_task: AtomicBool,
    /// Locked only briefly.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    asked: u64,
    questions: BTreeMap<String, (Value, oneshot::Sender<Value>)>,
}

impl TaskQuestions {
    /// Those of a call that may become a task.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn is_task(&self) -> bool {
        self.is_task.load(Ordering::Acquire)
    }

    pub fn becomes_task(&self) {
        self.is_task.store(true, Ordering::Release);
    }

    /// Asks, and waits for the answer. Dropping the future withdraws the question.
    pub async fn ask(&self, key: Option<&str>, request: Value) -> Option<Value> {
        let (sender, answer) = oneshot::channel();
        let key = self.add(key.unwrap_or("question"), request, sender);
        let _withdraws = Withdraw { of: self, key };
        answer.await.ok()
    }

    /// Adds a question whose asker waits. Returns its key.
    pub fn add(&self, key: &str, request: Value, asker: oneshot::Sender<Value>) -> String {
        let mut open = self.open.lock();
        open.asked += 1;
        // Never used again: clients remember which they have answered.
        let key = format!("{key}-{}", open.asked);
        open.questions.insert(key.clone(), (request, asker));
        key
    }

    /// Those without an answer.
    pub fn open(&self) -> Map<String, Value> {
        let mut open = self.open.lock();
        open.questions.retain(|_, (_, asker)| !asker.is_closed());
        open.questions.iter().map(|(key, (request, _))| (key.clone(), request.clone())).collect()
    }

    /// Passes answers on. Those to other questions are ignored.
    pub fn answered(&self, answers: Map<String, Value>) {
        let mut open = self.open.lock();
        for (key, answer) in answers {
            if let Some((_, waiting)) = open.questions.remove(&key) {
                let _ = waiting.send(answer);
            }
        }
    }
}

struct Withdraw<'a> {
    of: &'a TaskQuestions,
    key: String,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.of.open.lock().questions.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[tokio::test]
    async fn each_question_has_a_key_of_its_own_and_one_answer() {
        let questions = TaskQuestions::new();
        let ask = |key: Option<&'static str>| {
            let questions = Arc::clone(&questions);
            tokio::spawn(async move { questions.ask(key, json!({"method": "roots/list"})).await })
        };
        let (first, second) = (ask(Some("name")), ask(Some("name")));
        while questions.open().len() < 2 {
            tokio::task::yield_now().await;
        }
        let keys: Vec<String> = questions.open().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["name-1", "name-2"]);
        questions.answered(answers(json!({"name-2": {"a": 2}, "nobody": {}})));
        questions.answered(answers(json!({"name-2": {"a": 3}})));
        assert_eq!(second.await.unwrap(), Some(json!({"a": 2})));
        assert_eq!(questions.open().len(), 1);
        first.abort();
        assert!(first.await.is_err() && questions.open().is_empty(), "it was withdrawn");
    }
}
