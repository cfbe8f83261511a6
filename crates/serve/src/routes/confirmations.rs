//! One who listens on the WebSocket of approvals: is told what waits and how it ends, and may
//! answer.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use glovebox_model::{Approval, ApprovalId, ApprovalState, Via};
use glovebox_store::ApprovalFilter;
use jiff::Timestamp;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::approvals::{answer, find, page};
use super::websocket::{Socket, part, socket};
use crate::app::App;
use crate::auth::Caller;
use crate::body::parse;
use crate::failure::{Answer, discreet};
use crate::listen::Line;
use crate::mask;
use crate::per_space_limit::Place;
use glovebox_api::{Confirmation, ConfirmationAnswer};

/// Of one message of a client.
const MESSAGE_BYTES: usize = 1 << 20;
const PING: Duration = Duration::from_secs(30);
/// Whoever was not heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(75);
/// How often it is looked whether the server closes, and how often for what another server did.
const LOOK: Duration = Duration::from_secs(1);
const LOOK_ELSEWHERE: Duration = Duration::from_secs(2);
/// Between two looks, whatever happens: what goes on in other spaces must not cost this one.
const PAUSE: Duration = Duration::from_millis(200);
/// Approvals that are read at once.
const AT_ONCE: usize = 50;

pub(super) struct Confirmations {
    app: App,
    caller: Caller,
    _place: Place,
    /// Those that the client was told of and that wait still, each with how many had replied.
    told: BTreeMap<ApprovalId, usize>,
}

/// Why it ends.
enum End {
    Gone,
    Closing,
    /// The token is good no longer.
    Refused,
    TooLarge,
}

impl Confirmations {
    pub(super) fn new(app: App, caller: Caller, place: Place) -> Self {
        Self {
            app,
            caller,
            _place: place,
            told: BTreeMap::new(),
        }
    }

    pub(super) async fn attend(mut self, line: Line) {
        let mut socket = socket(line, MESSAGE_BYTES).await;
        let (code, reason) = match self.listen(&mut socket).await {
            End::Gone => return,
            End::Closing => (CloseCode::Away, "the server closes"),
            End::Refused => (CloseCode::Policy, "the token is not valid any more"),
            End::TooLarge => (CloseCode::Size, "a message has at most 1 MiB"),
        };
        part(socket, code, reason).await;
    }

    async fn listen(&mut self, socket: &mut Socket) -> End {
        let mut news = self.app.dispatcher().approval_news();
        let (mut ticks, mut pings) = (interval(LOOK), interval(PING));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let now = Instant::now();
        let (mut heard, mut checked, mut looked) = (now, now, now);
        let (mut changed, mut first) = (true, true);
        loop {
            let due = looked.elapsed() >= LOOK_ELSEWHERE;
            if due || (changed && (first || looked.elapsed() >= PAUSE)) {
                first = false;
                (looked, changed) = (Instant::now(), false);
                if let Err(end) = self.look(socket).await {
                    return end;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE), if changed => {}
                told = news.changed() => match told {
                    Ok(()) => changed = true,
                    Err(_) => return End::Closing,
                },
                message = socket.next() => {
                    heard = Instant::now();
                    match self.hear(socket, message).await {
                        Ok(answered) => changed |= answered,
                        Err(end) => return end,
                    }
                }
                _ = ticks.tick() => {
                    if self.app.dispatcher().is_closed() {
                        return End::Closing;
                    }
                    if heard.elapsed() >= SILENCE {
                        return End::Gone;
                    }
                    if checked.elapsed() >= self.app.times().recheck {
                        checked = Instant::now();
                        if !self.app.auth().is_still_good(&self.app, &self.caller).await {
                            return End::Refused;
                        }
                    }
                }
                _ = pings.tick() => {
                    if socket.send(Message::Ping(Vec::new().into())).await.is_err() {
                        return End::Gone;
                    }
                }
            }
        }
    }

    /// Tells what is new since the last look. A store that does not answer is asked again later.
    async fn look(&mut self, socket: &mut Socket) -> Result<(), End> {
        let mut waiting = BTreeMap::new();
        let mut filter = ApprovalFilter {
            state: Some(ApprovalState::Pending),
            ..ApprovalFilter::default()
        };
        loop {
            let Ok(page) = page(&self.app, &self.caller, filter.clone(), AT_ONCE).await else {
                return Ok(());
            };
            for approval in page.items {
                let replies = approval.replies.len();
                waiting.insert(approval.id.clone(), replies);
                if self.told.get(&approval.id) != Some(&replies) {
                    self.told.insert(approval.id.clone(), replies);
                    let asked = Confirmation::required(approval, Timestamp::now());
                    self.say(socket, &asked).await?;
                }
            }
            filter.cursor = page.next;
            if filter.cursor.is_none() {
                break;
            }
        }
        let over: Vec<ApprovalId> = self
            .told
            .keys()
            .filter(|id| !waiting.contains_key(*id))
            .cloned()
            .collect();
        for id in over {
            let Ok(approval) = find(&self.app, &self.caller, id.clone()).await else {
                continue;
            };
            if let Some(resolved) = Confirmation::resolved(&approval) {
                self.told.remove(&id);
                self.say(socket, &resolved).await?;
            }
        }
        Ok(())
    }

    async fn hear(
        &mut self,
        socket: &mut Socket,
        message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
    ) -> Result<bool, End> {
        use tokio_tungstenite::tungstenite::Error;
        let bytes = match message {
            Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
            Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => return Ok(false),
            Some(Err(Error::Capacity(_))) => return Err(End::TooLarge),
            // A close is answered by the socket itself, on the way to its end.
            Some(Ok(Message::Close(_))) => return Ok(false),
            Some(Err(_)) | None => return Err(End::Gone),
        };
        let (request_id, answered) = self.answer(&bytes).await;
        match answered {
            // Also one that the client had not been told of: it hears what became of it.
            Ok(approval) => {
                self.told.entry(approval.id).or_insert(0);
                Ok(true)
            }
            Err(failure) => {
                let error = Box::new(discreet(*failure.0));
                let said = Confirmation::Error { request_id, error };
                self.say(socket, &said).await?;
                Ok(false)
            }
        }
    }

    async fn answer(&self, bytes: &[u8]) -> (Option<ApprovalId>, Answer<Approval>) {
        // Who may only read learns that first, whatever was said.
        if let Err(failure) = self.caller.answers() {
            return (None, Err(failure));
        }
        let message: ConfirmationAnswer = match parse(bytes) {
            Ok(message) => message,
            Err(failure) => return (None, Err(failure)),
        };
        let id = message.request_id.clone();
        let answered = async {
            let meant = message.meant()?;
            // A token that was revoked a moment ago answers nothing.
            if !self.app.auth().is_still_good(&self.app, &self.caller).await {
                return Err(crate::auth::unauthenticated());
            }
            let approval = find(&self.app, &self.caller, id.clone()).await?;
            let said = meant.to(&approval)?;
            answer(&self.app, &self.caller, approval, Via::Websocket, said).await
        };
        let answered = answered.await;
        (Some(id), answered)
    }

    /// A client that takes nothing is cut by the connection itself.
    async fn say(&self, socket: &mut Socket, message: &Confirmation) -> Result<(), End> {
        let mut said = serde_json::to_value(message).map_err(|_| End::Gone)?;
        if let Ok(secrets) = self.app.secrets_of(&mask::whose(&self.caller)).await {
            secrets.redact_json(&mut said);
        }
        let sent = socket.send(Message::text(said.to_string())).await;
        sent.map_err(|_| End::Gone)
    }
}
