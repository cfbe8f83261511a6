//! What happened to an exec, told in order and as often as anybody asks: from the journal and the
//! files of its streams, and the end from its record.

use std::os::unix::fs::FileExt;

use glovebox_model::{
    Attempt, Code, Effect, Error, Exec, Result, Stage, Status, Stream, WorkspaceRef,
};
use glovebox_workspace::{Happened, JournalEntry, Layout};
use jiff::{SignedDuration, Timestamp};

use super::Dispatcher;
use crate::effects::Rehearsed;
use crate::visibility::Seen;

/// How long events can be read after an exec's end.
pub const EVENTS_KEPT: SignedDuration = SignedDuration::from_hours(24);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Timestamp,
    pub what: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    State {
        status: Status,
        queue_position: Option<u64>,
    },
    Output {
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// From here on the stream's output was not kept.
    Truncated {
        stream: Stream,
    },
    /// None when it is not kept any more.
    Effect(Option<Box<Effect>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<Event>,
    /// Nothing comes after the last of these.
    pub complete: bool,
}

/// At most `most` events after `after`. The record must have been read before: what it says about
/// the end is true then of everything that is in the journal now.
pub(super) fn read(layout: &Layout, exec: &Exec, after: u64, most: usize) -> Result<EventPage> {
    let ended = exec.status.is_final();
    if ended
        && exec
            .ended_at
            .is_some_and(|end| end + EVENTS_KEPT < Timestamp::now())
    {
        return Err(expired(exec));
    }
    // An exec that never ran, or ran without a server, has none, and just its end to tell.
    let (entries, written) = match layout.journal(&exec.project_id, &exec.exec_id)? {
        Some(journal) => (journal.read(after, most)?, journal.length()?),
        None => (Vec::new(), 0),
    };
    let full = entries.len() == most;
    let mut events = Vec::with_capacity(entries.len() + 1);
    for entry in entries {
        events.push(event(layout, exec, &entry)?);
    }
    if !ended || full {
        return Ok(EventPage {
            events,
            complete: false,
        });
    }
    let end = written + 1;
    if after < end {
        events.push(Event {
            seq: end,
            at: exec.ended_at.unwrap_or(Timestamp::UNIX_EPOCH),
            what: EventKind::State {
                status: exec.status,
                queue_position: None,
            },
        });
    }
    Ok(EventPage {
        events,
        complete: true,
    })
}

fn event(layout: &Layout, exec: &Exec, entry: &JournalEntry) -> Result<Event> {
    let what = match entry.happened {
        Happened::State {
            status,
            queue_position,
        } => EventKind::State {
            status,
            queue_position,
        },
        Happened::Truncated { stream } => EventKind::Truncated { stream },
        Happened::Effect { offset, length } => {
            let at = (offset, length);
            let effect = layout.effect_at(&exec.project_id, &exec.exec_id, at)?;
            EventKind::Effect(effect.map(Box::new))
        }
        Happened::Output {
            stream,
            offset,
            length,
        } => EventKind::Output {
            stream,
            bytes: part(layout, exec, stream, offset, length)?,
        },
    };
    Ok(Event {
        seq: entry.seq,
        at: entry.at,
        what,
    })
}

/// Shorter when the disk was full; what is not there any more cannot be told.
fn part(layout: &Layout, exec: &Exec, stream: Stream, offset: u64, length: u32) -> Result<Vec<u8>> {
    let file = match layout.stream(&exec.project_id, &exec.exec_id, stream) {
        Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let message = "cannot read what the program printed";
                return Err(
                    Error::new(Code::StoreUnavailable, Stage::Collect, message).caused_by(error)
                );
            }
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn expired(exec: &Exec) -> Error {
    let id = &exec.exec_id;
    let hours = EVENTS_KEPT.as_hours();
    Error::new(
        Code::Expired,
        Stage::Collect,
        format!("the events of `{id}` were kept for {hours} hours after its end"),
    )
    .hint("its record, its output and its artifacts are still there")
}

impl Dispatcher {
    /// At most `most` events after number `after`.
    pub fn events(&self, exec: &Seen<Exec>, after: u64, most: usize) -> Result<EventPage> {
        read(&*self.layout(&exec.ids.space_id)?, exec, after, most)
    }

    /// At most so many attempts to get out, from a place in the log on, and the place after them.
    pub fn network(
        &self,
        exec: &Seen<Exec>,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Attempt>, u64)> {
        self.engine.network.network_log(exec, from, most)
    }

    /// What an exec did, from a place in its log on; the place after it, and whether that is all.
    pub fn effects(
        &self,
        exec: &Seen<Exec>,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Effect>, u64, bool)> {
        self.engine.effects.read(exec, from, most)
    }

    /// The call that does a simulation for real.
    pub fn rehearsed(&self, exec: &Seen<Exec>) -> Result<Rehearsed> {
        let space = &exec.ids.space_id;
        let mut rehearsed = self.engine.simulations.rehearsed(space, &exec.exec_id)?;
        // `glovebox run` stood in it, and so it did not say where that was.
        if let Some(shared) = self.engine.workspaces.shared_as(space, &exec.project_id) {
            rehearsed.call.workspace = WorkspaceRef::Adopted(shared.path().to_owned());
        }
        Ok(rehearsed)
    }
}
