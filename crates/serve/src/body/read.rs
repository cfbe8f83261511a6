//! Reading a body: never more than its limit, and never slower than a client may be.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use glovebox_model::Code;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::room::Taken;
use crate::app::App;
use crate::failure::{Answer, Failure};

/// How much a body may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// 1 MiB.
    Plain,
    /// 16 MiB: an exec with its inputs.
    Exec,
    /// 20 MiB: what an exec may be, in the words of another protocol.
    Message,
    /// 64 MiB: a file.
    File,
}

impl Limit {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Plain => 1 << 20,
            Self::Exec => 16 << 20,
            Self::Message => 20 << 20,
            Self::File => 64 << 20,
        }
    }
}

/// A body, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(super) bytes: Bytes,
    pub(super) room: Taken,
}

impl Whole {
    /// The room is given back when the second part is dropped.
    pub(crate) fn parts(self) -> (Bytes, Taken) {
        (self.bytes, self.room)
    }
}

pub(crate) async fn whole(
    app: &App,
    headers: &HeaderMap,
    mut body: Body,
    limit: Limit,
) -> Answer<Whole> {
    let most = limit.bytes();
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > most) {
        return Err(too_large(limit));
    }
    let times = app.times();
    let end = Instant::now() + times.body;
    let mut room = Taken::default();
    let mut bytes = BytesMut::new();
    loop {
        let by = end.min(Instant::now() + times.body_pause);
        let frame = match timeout_at(by, body.frame()).await {
            Err(_) => {
                return Err(
                    Failure::new(Code::RequestTimeout, "the body came too slowly")
                        .hint("send it within a minute, without long pauses"),
                );
            }
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Failure::invalid("the body is not complete")),
            Ok(Some(Ok(frame))) => frame,
        };
        // Trailers say nothing that we would listen to.
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        if bytes.len() + piece.len() > most {
            return Err(too_large(limit));
        }
        app.room().grow(&mut room, bytes.len() + piece.len())?;
        bytes.extend_from_slice(&piece);
    }
    Ok(Whole {
        bytes: bytes.freeze(),
        room,
    })
}

fn too_large(limit: Limit) -> Failure {
    let most = limit.bytes();
    Failure::new(
        Code::PayloadTooLarge,
        format!(
            "the body is larger than {} MiB, the most that is taken here",
            most >> 20
        ),
    )
    .hint(match limit {
        Limit::Message => "write large files in parts, and join them in an exec",
        Limit::Plain => "send less: a body of this route needs no more",
        Limit::Exec => {
            "put large inputs into a workspace first, each with \
             `PUT /v1/workspaces/{project}/files/{path}`, and name its `project_id`"
        }
        Limit::File => "write it in parts, each a file of its own, and join them in an exec",
    })
}
