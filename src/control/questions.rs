//! What tools ask the person behind a client of the control face.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::message::{self, ELICIT, Question};
use crate::call::{Answer, Asking, ClientError, ClientFeatures, Elicitation, Elicited, Root};
use crate::process::Outbox;

/// Questions to the person that have no answer yet.
pub(super) struct Questions {
    outbox: Outbox,
    /// Locked only to add or to remove one.
    open: Mutex<(u64, HashMap<u64, oneshot::Sender<Elicited>>)>,
}

impl Questions {
    pub fn to(outbox: Outbox) -> Self {
        Self { outbox, open: Mutex::default() }
    }

    fn ask(&self, question: &Question) -> oneshot::Receiver<Elicited> {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open.lock();
        open.0 += 1;
        let id = open.0;
        open.1.insert(id, sender);
        self.outbox.send(&message::request(id, ELICIT, question));
        answer
    }

    /// Delivers an answer. One that cannot be read counts as cancelled.
    pub fn answered(&self, id: u64, result: Option<&RawValue>) {
        let Some(sender) = self.open.lock().1.remove(&id) else { return };
        let read = result.and_then(|result| serde_json::from_str(result.get()).ok());
        let _ = sender.send(read.unwrap_or(Elicited::Cancel));
    }
}

/// The person behind a client.
pub(super) struct Person {
    pub questions: Arc<Questions>,
    pub folder: String,
}

impl ClientFeatures for Person {
    fn elicit(&self, asking: Asking, question: Elicitation) -> Answer<'_, Elicited, ClientError> {
        let Elicitation { message, schema } = question;
        let answer = self.questions.ask(&Question { call: asking.call_id, tool: asking.tool, message, schema });
        Box::pin(async move { Ok(answer.await.unwrap_or(Elicited::Cancel)) })
    }

    fn roots(&self, _: Asking) -> Answer<'_, Vec<Root>, ClientError> {
        Box::pin(std::future::ready(Ok(vec![Root::of_folder(&self.folder)])))
    }
}
