//! A POST of our own to a place that somebody registered, such as a webhook. Redirects are not
//! followed, and the body of the answer is not read.

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use tokio::time::Instant;

use super::Client;
use super::exchange::{AnswerSource, Outgoing};
use crate::refusal::Refusal;
use crate::target::Target;

#[derive(Debug, Clone)]
pub struct DeliveryRequest {
    pub target: Target,
    pub content_type: HeaderValue,
    /// Such as a signature. `Host`, `Connection` and the length are set by the client.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    pub status: u16,
    /// Seconds, where the receiver says so.
    pub retry_after: Option<u64>,
    pub via: AnswerSource,
}

impl Client {
    pub async fn deliver(
        &self,
        delivery: &DeliveryRequest,
        deadline: Instant,
    ) -> Result<Delivered, Refusal> {
        let mut headers: HeaderMap = delivery.headers.iter().cloned().collect();
        headers.insert(CONTENT_TYPE, delivery.content_type.clone());
        let outgoing = Outgoing {
            method: Method::POST,
            target: &delivery.target,
            headers,
            body: delivery.body.clone(),
        };
        let answer = self.exchange(outgoing, deadline).await?;
        let retry_after = answer.header(RETRY_AFTER.as_str());
        Ok(Delivered {
            status: answer.status,
            retry_after: retry_after.and_then(|it| it.parse().ok()),
            via: answer.via.clone(),
        })
    }
}
