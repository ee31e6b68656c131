//! The methods of specification 000 for faces that have messages of their own: the same functions, without JSON.

use jsonrpsee::types::ErrorObjectOwned;

use super::client::Requests;
use super::message::Refusal;
use super::refusals::forbidden;
use super::table::{Entry, Nothing};
use super::tools::{
    AVAILABLE, Available, EXECUTE, Execute, Executed, Named, SCHEMAS, Schemas, available, execute, schemas,
};
use crate::protocol::TraceContext;

impl Requests {
    /// `ExecuteTool`, in a span of its client. Dropping it cancels the call.
    pub async fn execute_tool(&self, asked: Execute, trace: Option<TraceContext>) -> Result<Executed, Refusal> {
        self.permits(&EXECUTE)?;
        execute(self.client(), trace, asked).await.map_err(|error| refusal(&error))
    }

    /// `ListAvailableTools`.
    pub async fn list_available_tools(&self) -> Result<Available, Refusal> {
        self.permits(&AVAILABLE)?;
        available(self.client(), Nothing {}).await.map_err(|error| refusal(&error))
    }

    /// `GetToolSchema`.
    pub async fn get_tool_schema(&self, name: String) -> Result<Schemas, Refusal> {
        self.permits(&SCHEMAS)?;
        schemas(self.client(), Named { name }).await.map_err(|error| refusal(&error))
    }

    fn permits(&self, entry: &Entry) -> Result<(), Refusal> {
        if self.client().scope() < entry.scope { Err(refusal(&forbidden(entry, entry.scope))) } else { Ok(()) }
    }
}

fn refusal(error: &ErrorObjectOwned) -> Refusal {
    let data = error.data().and_then(|data| serde_json::from_str(data.get()).ok());
    Refusal { code: error.code(), message: error.message().to_owned(), data }
}
