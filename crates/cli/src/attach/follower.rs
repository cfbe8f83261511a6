//! The thread that draws what a session puts out, until its end.

use std::time::{Duration, Instant};

use glovebox_api::{SessionOutput, SessionState};
use glovebox_model::{Error, Result};

use super::{Event, Link};
use crate::sessions::{From, bytes_of, decoded};

/// Of one question: a server says something within a minute.
const WAIT: Duration = Duration::from_secs(20);
/// How long a server may be away. Sessions wait as long for it.
const AWAY_MOST: Duration = Duration::from_secs(600);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(2);
/// A server that is away for longer is mentioned.
const MENTIONED: Duration = Duration::from_secs(3);

pub(super) struct Follower {
    pub(super) link: Link,
    pub(super) from: From,
    /// The picture comes first, and then what follows it.
    pub(super) redraws: bool,
}

/// Since when a server is away.
struct Away {
    since: Instant,
    pause: Duration,
    mentioned: bool,
}

impl Follower {
    pub(super) fn run(mut self) {
        let event = match self.follow() {
            Ok(event) => event,
            Err(error) => Event::Failed(Box::new(error)),
        };
        self.link.events.tell(event);
    }

    fn follow(&mut self) -> Result<Event> {
        let mut away: Option<Away> = None;
        while !self.link.drawing.is_closed() {
            match self.step() {
                Ok(None) => {
                    if away.take().is_some_and(|it| it.mentioned) {
                        self.redraws = true;
                    }
                }
                Ok(Some(event)) => return Ok(event),
                Err(error) if error.retry.allowed => away = Some(self.wait(away, error)?),
                Err(error) => return Err(error),
            }
        }
        Ok(Event::Ended)
    }

    /// Some output. What comes of it when it was the last.
    fn step(&mut self) -> Result<Option<Event>> {
        if self.redraws && !self.redraw()? {
            return Ok(Some(Event::Gone));
        }
        let output = self.link.sessions.output(&self.link.id, self.from, WAIT)?;
        if output.stdout.offset > self.from.stdout && self.has_picture(&output) {
            // What is between is not kept any more.
            self.redraws = true;
            return Ok(None);
        }
        let complete = output.complete;
        self.from = From {
            stdout: output.stdout.next,
            stderr: output.stderr.next,
        };
        let bytes = bytes_of(output.stdout)?;
        match (self.link.drawing.draw(&bytes), complete) {
            (false, _) => Ok(Some(Event::Gone)),
            (true, true) => Ok(Some(Event::Ended)),
            (true, false) => Ok(None),
        }
    }

    fn has_picture(&self, output: &SessionOutput) -> bool {
        output.session.state == SessionState::Running
    }

    fn redraw(&mut self) -> Result<bool> {
        let screen = self.link.sessions.screen(&self.link.id)?;
        self.redraws = false;
        self.from.stdout = screen.offset;
        Ok(self.link.drawing.draw_anew(&decoded(&screen.redraw)?))
    }

    fn wait(&self, away: Option<Away>, error: Error) -> Result<Away> {
        let mut away = away.unwrap_or_else(|| Away {
            since: Instant::now(),
            pause: PAUSE_FIRST,
            mentioned: false,
        });
        if away.since.elapsed() > AWAY_MOST {
            return Err(error);
        }
        if away.since.elapsed() > MENTIONED && !away.mentioned {
            away.mentioned = true;
            let said = b"\r\n[the server does not answer; trying again]\r\n";
            self.link.drawing.draw(said);
        }
        let asked = error.retry.after_ms.map(Duration::from_millis);
        std::thread::sleep(asked.unwrap_or(away.pause).min(PAUSE_MOST));
        away.pause = (away.pause * 2).min(PAUSE_MOST);
        Ok(away)
    }
}
