//! Following what changes in a workspace, over as many connections as it takes. Events are numbered;
//! the server says when some between two connections are lost.

use std::time::Instant;

use glovebox_model::Result;
use serde_json::Value;

use super::follow::Backoff;
use super::refusal;
use super::sse::{Parser, Raw};
use super::transport::{ApiRequest, SendError, SendResult, Transport};
use crate::Target;

/// One event as the server told it.
#[derive(Debug)]
pub enum WatchEvent {
    /// Everything that happens from now on is told.
    Ready(Value),
    Change(Value),
    Overflow,
    End,
}

pub(crate) async fn watch(
    client: &dyn Transport,
    target: &Target,
    listener: &mut dyn FnMut(WatchEvent) -> Result<bool>,
    backoff: Backoff,
) -> Result<()> {
    let mut after = None;
    let (mut pause, mut progress) = (backoff.first, Instant::now());
    loop {
        let before = after;
        let trouble = match listen(client, target, &mut after, listener).await {
            Ok(()) => return Ok(()),
            Err(SendError::Refused(error)) if !error.retry.allowed => return Err(error),
            Err(trouble) => trouble,
        };
        // Never heard of: not a connection that broke.
        if after.is_none() {
            return Err(trouble.into());
        }
        if after != before {
            (pause, progress) = (backoff.first, Instant::now());
        }
        if progress.elapsed() + pause > backoff.total {
            return Err(trouble.into());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(backoff.most);
    }
}

/// Over one connection, until it breaks or nobody wants to hear more.
async fn listen(
    client: &dyn Transport,
    target: &Target,
    after: &mut Option<u64>,
    listener: &mut dyn FnMut(WatchEvent) -> Result<bool>,
) -> SendResult<()> {
    let ask = ApiRequest {
        accept: "text/event-stream",
        ..ApiRequest::get(target.clone().optional("after", *after))
    };
    let mut pieces = client.open(&ask).await?;
    let mut parser = Parser::default();
    let garbled = |why: &str| SendError::Broken(refusal::garbled(&client.address(), why));
    while let Some(piece) = pieces.next().await? {
        for raw in parser.push(&piece).map_err(|error| garbled(error.0))? {
            let (seq, told) = read(raw).ok_or_else(|| garbled("an event cannot be read"))?;
            let is_again = after.is_some() && matches!(told, WatchEvent::Ready(_));
            *after = Some(seq);
            let is_end = matches!(told, WatchEvent::End);
            if !is_again && !listener(told).map_err(SendError::Refused)? || is_end {
                return Ok(());
            }
        }
    }
    Err(garbled("the events ended"))
}

fn read(raw: Raw) -> Option<(u64, WatchEvent)> {
    let seq = raw.id.parse().ok()?;
    let data = || serde_json::from_str(&raw.data).ok();
    let told = match raw.kind.as_str() {
        "ready" => WatchEvent::Ready(data()?),
        "change" => WatchEvent::Change(data()?),
        "overflow" => WatchEvent::Overflow,
        "end" => WatchEvent::End,
        _ => return None,
    };
    Some((seq, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_number_and_a_known_name() {
        let raw = |id: &str, kind: &str, data: &str| Raw {
            id: id.to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
        };
        let read = |id, kind, data| read(raw(id, kind, data)).map(|(seq, _)| seq);
        assert_eq!(read("7", "change", "{\"path\":\"a\"}"), Some(7));
        assert_eq!(read("8", "end", ""), Some(8));
        for (id, kind, data) in [
            ("", "change", "{}"),
            ("7", "change", "{"),
            ("7", "new", "{}"),
        ] {
            assert_eq!(read(id, kind, data), None, "{id} {kind} {data}");
        }
    }
}
