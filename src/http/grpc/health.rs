//! `grpc.health.v1.Health`: whether new sessions are accepted, now and as it changes.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio::sync::watch;
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

/// What it is now, then what it becomes.
fn changes(accepts: watch::Receiver<bool>) -> impl Stream<Item = HealthCheckResponse> {
    unfold((accepts, false), |(mut accepts, is_begun)| async move {
        if is_begun {
            accepts.changed().await.ok()?;
        }
        let now = status(*accepts.borrow_and_update());
        Some((now, (accepts, true)))
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
            Box::pin(changes(self.0.accepts()).map(Ok))
        } else {
            let unknown = futures_util::stream::iter([Ok(answer(ServingStatus::ServiceUnknown))]);
            Box::pin(unknown.chain(futures_util::stream::pending()))
        };
        Ok(Response::new(stream))
    }
}
