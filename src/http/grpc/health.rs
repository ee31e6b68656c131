//! `grpc.health.v1.Health`: whether new sessions are accepted, now and as it changes.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{iter, pending, unfold};
use futures_util::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::service::NAME;
use crate::control::Control;

/// The longest message of a request.
pub const LONGEST: usize = 4 << 10;

/// The health of this hostler and of its service, which are the same.
pub struct Health(pub Arc<Control>);

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

fn status(accepts: bool) -> HealthCheckResponse {
    answer(if accepts { ServingStatus::Serving } else { ServingStatus::NotServing })
}

fn is_known(service: &str) -> bool {
    service.is_empty() || service == NAME
}

/// What it is now, then what it becomes, until hostler ends.
fn changes(control: Arc<Control>) -> impl Stream<Item = HealthCheckResponse> {
    let accepts = control.accepts();
    unfold((control, accepts, false), |(control, mut accepts, is_begun)| async move {
        if is_begun {
            tokio::select! {
                // The end is a change, too.
                biased;
                changed = accepts.changed() => changed.ok()?,
                () = control.closed() => return None,
            }
        }
        let now = status(*accepts.borrow_and_update());
        Some((now, (control, accepts, true)))
    })
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(&self, asked: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&asked.get_ref().service) {
            return Err(Status::not_found("there is no such service"));
        }
        Ok(Response::new(status(*self.0.accepts().borrow())))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// Stays open. A service that is not known might come to be, for all that the protocol says.
    async fn watch(&self, asked: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let stream: Self::WatchStream = if is_known(&asked.get_ref().service) {
            Box::pin(changes(Arc::clone(&self.0)).map(Ok))
        } else {
            let control = Arc::clone(&self.0);
            let unknown = iter([Ok(answer(ServingStatus::ServiceUnknown))]).chain(pending());
            Box::pin(unknown.take_until(async move { control.closed().await }))
        };
        Ok(Response::new(stream))
    }
}
