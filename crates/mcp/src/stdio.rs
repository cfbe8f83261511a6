//! Over standard input and output, for the host that started this process.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use glovebox_model::{Code, Error, Stage};
use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

use crate::server::Server;

/// From the last message to the call that it is.
const TAKEN_UP: Duration = Duration::from_millis(50);
/// How long calls may go on whose host has said all it will say. Hosts kill what stays longer.
const ANSWERED: Duration = Duration::from_millis(1500);

/// Until the host closes our standard input, or `stop` says so. Then `close` ends what runs, so that
/// calls which are under way come to their end, and its word is returned.
pub async fn serve_stdio<T>(
    server: Server,
    stop: impl Future<Output = ()>,
    close: impl Future<Output = T>,
) -> Result<T, Error> {
    let mut under_way = server.under_way();
    let (input, output) = stdio_pipes();
    let ended = Arc::new(Notify::new());
    let input = Heard {
        input,
        ended: Arc::clone(&ended),
    };
    let (mut stop, mut serving) = (pin!(stop), pin!(server.serve((input, output))));
    let running = tokio::select! {
        running = &mut serving => running.map_err(|error| failed(&error))?,
        () = ended.notified() => return Ok(close.await),
        () = &mut stop => return Ok(close.await),
    };
    let token = running.cancellation_token();
    let mut waiting = pin!(running.waiting());
    tokio::select! {
        over = &mut waiting => {
            over.map_err(|error| failed(&error))?;
            return Ok(close.await);
        }
        () = ended.notified() => {
            // What was read last is taken up by now, and what was asked for is still answered.
            tokio::time::sleep(TAKEN_UP).await;
            let answered = under_way.wait_for(|count| *count == 0);
            tokio::select! {
                _ = tokio::time::timeout(ANSWERED, answered) => {}
                () = &mut stop => {}
            }
        }
        () = &mut stop => {}
    }
    let closed = close.await;
    token.cancel();
    waiting.await.map_err(|error| failed(&error))?;
    Ok(closed)
}

fn failed(error: &dyn std::fmt::Display) -> Error {
    let message = format!("the client cannot be spoken with: {error}");
    Error::new(Code::Internal, Stage::Open, message)
        .hint("an agent's host starts this command; `glovebox mcp install --help` sets one up")
}

/// Tells us of its end, and nobody else: the SDK would first wait some seconds for calls that are
/// under way, and those end when what they run is ended.
struct Heard<R> {
    input: R,
    ended: Arc<Notify>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Heard<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let room = buffer.remaining() > 0;
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        let over = match &read {
            Poll::Ready(Ok(())) => room && buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        match over {
            true => {
                self.ended.notify_one();
                Poll::Pending
            }
            false => read,
        }
    }
}
